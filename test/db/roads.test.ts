/** Both roads to the database: whatever the one driver does, the other does, too. */
import { inspect } from "node:util";
import { sql } from "drizzle-orm";
import { describe, expect, inject, onTestFinished, test, vi } from "vitest";
import { connect, type Connection, type Database } from "../../src/db/connect.ts";
import { sqlStateOf } from "../../src/db/postgres-errors.ts";
import { inOneFlight, inTransaction, TransactionAborted } from "../../src/db/transaction.ts";
import { type Fate, type Message, startProxy } from "../local/proxy.ts";
import { anInvoiceEvent, logLines, openTestbed } from "../worker/testbed.ts";
import { int32, message, refusalOfNeon } from "./server-messages.ts";

const TIMEOUTS = { lockTimeoutMs: 3_000, statementTimeoutMs: 5_000 };
const ROADS: Readonly<Record<string, () => Omit<Database, "connectionString">>> = {
  Hyperdrive: () => ({ pipeline: true }),
  "Hyperdrive without pipelining": () => ({ pipeline: false }),
  "a WebSocket": () => ({ pipeline: true, webSocket: { proxy: new URL(inject("bridgeUrl")) } }),
};

const read = async (db: Connection, query: ReturnType<typeof sql>) =>
  (await Promise.all(db.send([db.compile(query)])))[0]?.rows;

const cutAtCommit = ({ from, type, bytes }: Message): Fate =>
  from === "server" && type === "C" && bytes.includes("COMMIT") ? "cut before" : "pass";

/** As Postgres does when a transaction was aborted before. */
const rollsBackAtCommit = ({ from, type, bytes }: Message): Fate =>
  from === "server" && type === "C" && bytes.includes("COMMIT")
    ? { instead: message("C", Buffer.from("ROLLBACK\0")) }
    : "pass";

/** Recognisable, in order not to be found in a log line. */
const ODD = "pw-unheard-of";

/** https://www.postgresql.org/docs/current/protocol-message-formats.html */
const SASL_FINAL = 12;

describe.each(Object.entries(ROADS))("by %s", (name, road) => {
  async function open(fate?: (message: Message) => Fate) {
    const { databaseUrl, rows } = await openTestbed();
    const proxy = fate && (await startProxy(databaseUrl, { fate }));
    if (proxy) onTestFinished(proxy.close);
    const deadline = new AbortController();
    const connectionString = proxy?.route(databaseUrl) ?? databaseUrl;
    const db = await connect({ ...road(), connectionString }, deadline.signal);
    onTestFinished(() => db.close());
    const backends = async () =>
      rows(`select pid from pg_stat_activity
        where datname = current_database() and application_name = 'stripe-inbox'`);
    return { db, rows, deadline, backends };
  }
  test("values are read alike, by us and by a handler", async () => {
    const { db } = await open();
    const values = sql`select 9007199254740993::bigint as big, 7::int as int, 1.50::numeric as exact,
      '{"n": 1, "t": "ü"}'::jsonb as json, true as yes, null::text as none, '{a,null}'::text[] as list,
      '2026-11-30 12:00:00.123456+02'::timestamptz as at, '\\xdeadbeef'::bytea as bytes,
      0.1::float8 as float, '1 day'::interval as long, array[1,2]::bigint[] as bigs`;
    const expected = {
      big: "9007199254740993",
      int: 7,
      exact: "1.50",
      json: { n: 1, t: "ü" },
      yes: true,
      none: null,
      list: ["a", null],
      at: new Date("2026-11-30T10:00:00.123Z"),
      bytes: Buffer.from("deadbeef", "hex"),
      float: 0.1,
      bigs: ["1", "2"],
    };
    expect(await read(db, values)).toEqual([expect.objectContaining(expected)]);
    // Drizzle has times as text.
    const at = "2026-11-30 10:00:00.123456+00";
    await inTransaction(db, TIMEOUTS, [sql`set local time zone 'utc'`], async (_, tx) => {
      const { rows } = await tx.execute(values);
      expect(rows).toEqual([expect.objectContaining({ ...expected, at })]);
      return { commit: [], value: null };
    });
  });

  test("parameters arrive alike", async () => {
    const { db } = await open();
    const bytes = new Uint8Array([0, 1, 254, 255]);
    const echo = sql`select ${bytes}::bytea as bytes, ${"é€𝄞\n"}::text as text, ${null}::text as none,
      ${12345678901234567890n}::numeric as big, ${new Date(0)}::timestamptz as at,
      ${JSON.stringify({ a: [1] })}::jsonb as json, ${false}::bool as no`;
    expect(await read(db, echo)).toEqual([
      {
        bytes: Buffer.from(bytes),
        text: "é€𝄞\n",
        none: null,
        big: "12345678901234567890",
        at: new Date(0),
        json: { a: [1] },
        no: false,
      },
    ]);
    const large = "x".repeat(3_000_000);
    expect(await read(db, sql`select length(${large}::text) as n`)).toEqual([{ n: 3_000_000 }]);
  });

  test("what Postgres refuses is known by its SQLSTATE, and the connection goes on", async () => {
    const { db } = await open();
    expect(await read(db, sql`select 1 / ${0}::int`).catch(sqlStateOf)).toBe("22012");
    const byHandler = (text: string) =>
      inTransaction(db, TIMEOUTS, [], async (_, tx) => {
        await tx.execute(sql.raw(text));
        return { commit: [], value: null };
      }).catch(sqlStateOf);
    expect(await byHandler("select nothing")).toBe("42703");
    expect(await byHandler("select 1; select 2")).toBe("42601");
    expect(await read(db, sql`select 1 as n`)).toEqual([{ n: 1 }]);
    expect(db.isLost()).toBe(false);
  });

  test("a named statement that cannot be parsed fails the next time as it did the first", async () => {
    const { db } = await open();
    const ask = (column: string) =>
      inTransaction(db, TIMEOUTS, [], async (_, tx) => {
        const query = tx.select({ n: sql.raw(column) }).from(sql`(values (1)) as v (n)`);
        await query.prepare("asked_by_name").execute();
        return { commit: [], value: "asked" };
      }).catch(sqlStateOf);
    expect(await ask("nothing")).toBe("42703");
    expect(await ask("nothing")).toBe("42703");
    expect(await ask("n")).toBe("asked");
    expect(await ask("n")).toBe("asked");
  });

  test("it is known whether a transaction is open, and whether it can commit", async () => {
    const { db } = await open();
    const send = (text: string) => Promise.allSettled(db.send([{ text, values: [] }]));
    expect(db.inTransaction()).toBe(false);
    await send("begin");
    expect(db.inTransaction()).toBe(true);
    await send("select 1 / 0");
    // Of an error is heard before of what state it leaves.
    await expect.poll(() => db.inTransaction()).toBe(false);
    await send("rollback");
    expect(db.inTransaction()).toBe(false);
  });

  test("a backend that ends is a connection that is lost, also to whoever waits", async () => {
    const { db, rows, backends } = await open();
    const waiting = read(db, sql`select pg_sleep(60)`).catch(sqlStateOf);
    await expect
      .poll(() => rows("select 1 from pg_stat_activity where query ~ '^select pg_sleep'"))
      .toHaveLength(1);
    for (const { pid } of await backends()) await rows("select pg_terminate_backend($1)", [pid]);
    expect(await waiting).toBe("57P01");
    await expect.poll(() => db.isLost()).toBe(true);
    await expect(read(db, sql`select 1`)).rejects.toThrow();
  });

  test("the deadline cuts it, also for whoever waits", async () => {
    const { db, deadline, backends } = await open();
    const waiting = read(db, sql`select pg_sleep(3)`);
    deadline.abort();
    await expect(waiting).rejects.toThrow();
    expect(db.isLost()).toBe(true);
    await db.close();
    await expect.poll(backends, { timeout: 10_000 }).toEqual([]);
  });

  test("the deadline cuts whoever connects to a server that says nothing", async () => {
    const spoken = Promise.withResolvers<void>();
    const proxy = await startProxy(inject("postgresUrl"), {
      fate: () => {
        spoken.resolve();
        return "silence";
      },
    });
    onTestFinished(proxy.close);
    const connectionString = proxy.route(inject("postgresUrl"));
    const deadline = new AbortController();
    const connecting = connect({ ...road(), connectionString }, deadline.signal);
    await spoken.promise;
    deadline.abort();
    await expect(connecting).rejects.toMatchObject({ name: "DatabaseUnavailable" });
  });

  test("whoever is asked for a password and has none is let down at once", async () => {
    const url = new URL(inject("guardedUrls").scram);
    url.password = "";
    await expectLetDown(url.href);
  });

  test("a server that turns out not to know the password is left at once", async () => {
    const proxy = await startProxy(inject("guardedUrls").scram, {
      fate: ({ from, type, bytes }) =>
        from === "server" && type === "R" && bytes.readInt32BE(5) === SASL_FINAL
          ? { instead: message("R", Buffer.concat([int32(SASL_FINAL), Buffer.from("v=bm9uZQ==")])) }
          : "pass",
    });
    onTestFinished(proxy.close);
    await expectLetDown(proxy.route(inject("guardedUrls").scram));
  });

  /** The deadline would cut it, too. */
  async function expectLetDown(connectionString: string): Promise<void> {
    const deadline = AbortSignal.timeout(9_000);
    const connecting = connect({ ...road(), connectionString }, deadline);
    await expect(connecting).rejects.toMatchObject({ name: "DatabaseUnavailable" });
    expect(deadline.aborted).toBe(false);
  }

  test("a connection that is lost while it is being closed is closed by that", async () => {
    const { db } = await open(({ from, type }) =>
      from === "server" && type === "D" ? "cut before" : "pass",
    );
    const asked = db.send([db.compile(sql`select ${1}::int`)]);
    // What would cut it in the end never comes.
    vi.useFakeTimers({ toFake: ["setTimeout"] });
    const closing = db.close();
    vi.useRealTimers();
    await expect(Promise.all(asked)).rejects.toThrow();
    await closing;
  });

  test("whoever looks at a transaction, however deeply, sees no password", async () => {
    const { databaseUrl } = await openTestbed();
    const url = new URL(databaseUrl);
    url.password = ODD;
    const db = await connect(
      { ...road(), connectionString: url.href },
      new AbortController().signal,
    );
    onTestFinished(() => db.close());
    const { tx, end } = db.openTx(() => undefined);
    expect(inspect(tx, { depth: 12 })).not.toContain(ODD);
    end();
  });

  test("questions that are asked at once are sent in turn, and none is lost", async () => {
    const { db } = await open();
    const asked = await inTransaction(db, TIMEOUTS, [], async (_, tx) => ({
      commit: [],
      value: await Promise.all([1, 2, 3].map((n) => tx.execute(sql`select ${n}::int as n`))),
    }));
    expect(asked.map(({ rows: [row] }) => row?.["n"])).toEqual([1, 2, 3]);
  });

  test("a COMMIT whose answer never came is no success, and was one", async () => {
    const { db, rows } = await open(cutAtCommit);
    await rows("create table notes (text text)");
    const committing = inOneFlight(db, TIMEOUTS, [sql`insert into notes values (${"kept"})`]);
    await expect(committing).rejects.toThrow();
    expect(db.isLost()).toBe(true);
    expect(await rows("select text from notes")).toEqual([{ text: "kept" }]);
  });

  test("a COMMIT that rolls back is no success", async () => {
    const { db } = await open(rollsBackAtCommit);
    const write = sql`select 1`;
    await expect(inOneFlight(db, TIMEOUTS, [write])).rejects.toThrow(TransactionAborted);
    const deciding = inTransaction(db, TIMEOUTS, [], async () => ({
      commit: [write],
      value: null,
    }));
    await expect(deciding).rejects.toThrow(TransactionAborted);
    expect(db.isLost()).toBe(false);
  });

  test("closing lets what was sent finish, and leaves no backend behind", async () => {
    const { db, rows, backends } = await open();
    await rows("create table notes (text text)");
    const writing = Promise.all(
      db.send([db.compile(sql`insert into notes select pg_sleep(0.1)::text`)]),
    );
    await db.close();
    expect(await rows("select count(*)::int as n from notes")).toEqual([{ n: 1 }]);
    await writing;
    await expect.poll(backends, { timeout: 10_000 }).toEqual([]);
  });

  test.skipIf(name === "Hyperdrive")(
    "nothing is sent before the answer to what was sent",
    async () => {
      let asked = 0;
      const early: string[] = [];
      const { db } = await open(({ from, type }) => {
        if (from === "server" && type === "Z") asked = 0;
        if (from === "client" && (type === "Q" || type === "P") && ++asked > 1) early.push(type);
        return "pass";
      });
      expect(db.pipelines).toBe(false);
      const one = db.compile(sql`select ${1}::int`);
      await inOneFlight(db, TIMEOUTS, [sql`select 1`, sql`select 2`]);
      await Promise.all([...db.send([one, one]), ...db.send([one])]);
      expect(early).toEqual([]);
    },
  );
});

describe.each(["hyperdrive", "neon"] as const)("by %s, what Neon's proxy refuses", (road) => {
  test.each([
    [`password authentication failed for user '${ODD}'`, "The password is wrong"],
    ["The requested endpoint could not be found", "no such endpoint or database"],
    [`database "${ODD}" does not exist`, "no such endpoint or database"],
    [`This IP address ${ODD} is not allowed to connect to this endpoint.`, "Neon's allow list"],
    ["Your project has exceeded the compute time quota. Upgrade your plan.", "A quota of Neon's"],
    ["Too many connections to this endpoint. Please try again later.", "go through a pooler"],
    ["remaining connection slots are reserved", "go through a pooler"],
    [`unsupported startup parameter in options: ${ODD}`, "Neon's pooler takes no such options"],
    ["Control plane request failed", "it passes, as a rule"],
  ])("as %s leads to what to do, and is not repeated", async (words, todo) => {
    const proxy = await startProxy(inject("postgresUrl"), { fate: refusalOfNeon(words) });
    onTestFinished(proxy.close);
    const route = (url: string) => proxy.route(url).replace(/\/\/[^@]*@/, `//${ODD}:${ODD}@`);
    const inbox = await openTestbed({ road, route });
    const lines = await logLines(async () => {
      expect(await inbox.deliver(anInvoiceEvent())).toMatchObject({ status: 503 });
    });
    const said = { sqlstate: "XX000", todo: expect.stringContaining(todo) };
    expect(lines).toEqual([expect.objectContaining({ error: "DatabaseUnavailable", ...said })]);
    expect(JSON.stringify(lines)).not.toContain(ODD);
  });
});

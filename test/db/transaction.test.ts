/** Nothing is answered as done that was not committed: not a write unsent, not a BEGIN or COMMIT failed. */
import { sql } from "drizzle-orm";
import { describe, expect, inject, test } from "vitest";
import type { Connection } from "../../src/db/connect.ts";
import { inOneFlight, inTransaction } from "../../src/db/transaction.ts";
import { withConnection } from "../../src/db/with-connection.ts";
import { type Fate, type Message, startProxy } from "../local/proxy.ts";
import { bookWith, NOTHING_BOOKED, ONE_BOOKING, progress } from "../worker/disturbances.ts";
import { anInvoiceEvent, openTestbed } from "../worker/testbed.ts";

const circular: Record<string, unknown> = {};
circular["self"] = circular;

/** Values that the driver cannot encode, so that it never sends the statement. */
const UNSENDABLE: readonly [string, unknown][] = [
  ["a circular object", circular],
  ["a BigInt inside an object", { amount: 1n }],
  ["an object whose toJSON returns undefined", { toJSON: () => undefined }],
  ["an object whose toJSON throws", { toJSON: () => expect.unreachable() }],
  ["a function", () => 1],
  ["a symbol", Symbol("in_extra")],
  ["a placeholder that nobody filled", sql.placeholder("customer")],
];

/** Into a column that may be null, so that nothing but the value can be refused. */
const write = (value: unknown) => sql`
  insert into invoices (id, status, customer_id) values ('in_extra', 'draft', ${value}::text)`;

describe.each(["on", "off"])("with PIPELINE=%s", (PIPELINE) => {
  const env = { PIPELINE };

  describe("a write that cannot be sent stops the COMMIT", () => {
    test.each(UNSENDABLE)("%s, behind the other writes", async (_, value) => {
      const inbox = await openTestbed({ endpoints: bookWith(() => [write(value)]), env });
      const event = anInvoiceEvent();
      expect(await inbox.deliver(event)).toMatchObject({ status: 500, outcome: "failed" });
      expect(await inbox.books()).toEqual(NOTHING_BOOKED);
      expect(await progress(inbox, event.id)).toMatchObject({ outcome: null, attempts: 1 });
    });

    test.each(UNSENDABLE)("%s, before the other writes", async (_, value) => {
      const endpoints = bookWith(() => [write(value)], "first");
      const inbox = await openTestbed({ endpoints, env });
      expect(await inbox.deliver(anInvoiceEvent())).toMatchObject({ status: 500 });
      expect(await inbox.books()).toEqual(NOTHING_BOOKED);
    });

    test("its like that can be sent is committed with the booking", async () => {
      const endpoints = bookWith(() => [write({ amount: 1 })]);
      const inbox = await openTestbed({ endpoints, env });
      expect(await inbox.deliver(anInvoiceEvent())).toMatchObject({ outcome: "processed" });
      expect(await inbox.books()).toEqual({ ...ONE_BOOKING, invoices: 2 });
    });
  });

  test.each([
    ["a text that Postgres cannot hold", sql`select ${"a\u0000b"}::text`],
    ["two statements in one", sql.raw("update invoices set updated_at = now(); commit")],
    [
      "more parameters than the protocol can count",
      sql.join([
        sql`select 1 where 0 in (`,
        sql.join(
          Array.from({ length: 65_536 }, () => sql`${1}::int`),
          sql`,`,
        ),
        sql`)`,
      ]),
    ],
    ["an error", sql`select 1 / 0`],
  ])("%s among the writes: nothing is committed", async (_, unfit) => {
    const inbox = await openTestbed({ endpoints: bookWith(() => [unfit]), env });
    const event = anInvoiceEvent();
    expect(await inbox.deliver(event)).toMatchObject({ status: 500, outcome: "failed" });
    expect(await inbox.books()).toEqual(NOTHING_BOOKED);
    expect(await progress(inbox, event.id)).toMatchObject({ outcome: null, attempts: 1 });
  });

  test("as many parameters as the protocol can count are no fault", async () => {
    const list = sql.join(
      Array.from({ length: 65_535 }, () => sql`${1}::int`),
      sql`,`,
    );
    const endpoints = bookWith(() => [sql`select 1 where 0 in (${list})`]);
    const inbox = await openTestbed({ endpoints, env });
    expect(await inbox.deliver(anInvoiceEvent())).toMatchObject({ outcome: "processed" });
  });

  describe("a BEGIN that fails", () => {
    test.each([
      ["an event that is handled", "invoice.paid", "processed", ONE_BOOKING],
      ["an event that is ignored", "customer.updated", "ignored", NOTHING_BOOKED],
    ])("leaves no mark of %s, and the redelivery finds it new", async (_, type, outcome, books) => {
      await using proxy = await startProxy(inject("postgresUrl"), {
        // The first of the delivery alone, and then every one of the next.
        fate: (message) =>
          message.connection === 2 || (message.connection === 1 && message.n === 2)
            ? replaceText(message, "begin", "bogus")
            : "pass",
      });
      const inbox = await openTestbed({ env, route: proxy.route });
      const event = { ...anInvoiceEvent(), type };

      expect(await inbox.deliver(event)).toMatchObject({ status: 500, outcome: "failed" });
      expect(await progress(inbox, event.id)).toMatchObject({ outcome: null, last_error: "42601" });
      await inbox.rows("delete from webhook_inbox");
      expect(await inbox.deliver(event)).toMatchObject({ status: 503, outcome: "unavailable" });
      expect(await inbox.books()).toEqual({ ...NOTHING_BOOKED, inbox: 0 });
      expect(await inbox.deliver(event)).toMatchObject({ status: 200, outcome });
      expect(await inbox.books()).toEqual(books);
    });
  });

  test("a COMMIT that answers ROLLBACK without an error is no success", async () => {
    await using proxy = await startProxy(inject("postgresUrl"), {
      fate: (message) =>
        message.connection === 1 ? replaceText(message, "commit\0", "abort \0") : "pass",
    });
    const inbox = await openTestbed({ env, route: proxy.route });
    const event = anInvoiceEvent();
    const first = await inbox.deliver(event);
    expect(first.status).toBeGreaterThanOrEqual(500);
    expect(await inbox.books()).toMatchObject({ invoices: 0, entries: 0, messages: 0 });
    expect(await inbox.deliver(event)).toMatchObject({ status: 200, outcome: "processed" });
    expect(await inbox.books()).toEqual(ONE_BOOKING);
  });

  test("a COMMIT that fails is a failure on record, and can be tried again", async () => {
    const inbox = await openTestbed({ env });
    await inbox.rows(`create function refuse() returns trigger language plpgsql as $$
      begin raise exception using errcode = '23514'; end $$`);
    await inbox.rows(`create constraint trigger refuse after insert on outbox
      deferrable initially deferred for each row execute function refuse()`);
    const event = anInvoiceEvent();
    expect(await inbox.deliver(event)).toMatchObject({ status: 500, outcome: "failed" });
    expect(await inbox.books()).toEqual(NOTHING_BOOKED);
    expect(await progress(inbox, event.id)).toMatchObject({ outcome: null, last_error: "23514" });

    await inbox.rows("drop trigger refuse on outbox");
    expect(await inbox.deliver(event)).toMatchObject({ status: 200, outcome: "processed" });
    expect(await inbox.books()).toEqual(ONE_BOOKING);
  });

  test("a connection that is cut is named as that, whatever was under way", async () => {
    await using proxy = await startProxy(inject("postgresUrl"), {
      fate: ({ from, bytes }) =>
        from === "client" && bytes.includes("pg_sleep") ? "cut before" : "pass",
    });
    const inbox = await openTestbed();
    const database = {
      connectionString: proxy.route(inbox.databaseUrl),
      pipeline: PIPELINE === "on",
    };
    const time = { deadlineMs: 9_000, afterwards: () => undefined };
    const timeouts = { lockTimeoutMs: 1_000, statementTimeoutMs: 2_000 };
    const asleep = sql`select pg_sleep(0)`;
    const lost = { name: "DatabaseUnavailable", message: expect.stringContaining("lost") };
    for (const work of [
      (db: Connection) => inOneFlight(db, timeouts, [asleep]),
      (db: Connection) => inTransaction(db, timeouts, [asleep], () => expect.unreachable()),
      (db: Connection) =>
        inTransaction(db, timeouts, [], () => Promise.resolve({ commit: [asleep], value: null })),
    ]) {
      const working = withConnection(database, time, ({ db }) => work(db));
      await expect(working).rejects.toMatchObject(lost);
    }
  });

  test("the settings of a transaction end with it, whether it is kept or not", async () => {
    const inbox = await openTestbed({ env });
    const time = { deadlineMs: 9_000, afterwards: () => undefined };
    const database = { connectionString: inbox.databaseUrl, pipeline: PIPELINE === "on" };
    const timeouts = { lockTimeoutMs: 1_234, statementTimeoutMs: 2_345 };
    const show = sql`select current_setting('lock_timeout') as lock,
      current_setting('statement_timeout') as statement,
      current_setting('idle_in_transaction_session_timeout') as idle`;

    const seen = await withConnection(database, time, async ({ db }) => {
      const inside = await inTransaction(db, timeouts, [show], ([rows]) =>
        Promise.resolve({ commit: [], value: rows?.[0] }),
      );
      const [kept] = await Promise.all(db.send([db.compile(show)]));
      await inTransaction(db, timeouts, [], () => Promise.resolve({ rollback: true, value: null }));
      const [givenUp] = await Promise.all(db.send([db.compile(show)]));
      return [inside, kept?.rows[0], givenUp?.rows[0]];
    });
    const none = { lock: "0", statement: "0", idle: "0" };
    expect(seen).toEqual([{ lock: "1234ms", statement: "2345ms", idle: "15s" }, none, none]);
  });
});

/** A client's message with another text of the same length in it, if it has the first. */
function replaceText({ from, bytes }: Message, text: string, other: string): Fate {
  const before = bytes.toString("latin1");
  if (from !== "client" || !before.includes(text)) return "pass";
  return { instead: Buffer.from(before.replace(text, other), "latin1") };
}

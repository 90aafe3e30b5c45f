/** Transactions that share a flight: each ends by itself, whatever becomes of those beside it. */
import { sql } from "drizzle-orm";
import { expect, onTestFinished, test } from "vitest";
import { connect, type Write } from "../../src/db/connect.ts";
import { sqlStateOf } from "../../src/db/postgres-errors.ts";
import { eachInOneFlight, insideTransaction } from "../../src/db/transaction.ts";
import { markOrFail, NOT_MARKED } from "../../src/inbox/transitions.ts";
import { startProxy } from "../local/proxy.ts";
import { openTestbed } from "../worker/testbed.ts";
import { waits } from "../worker/waiting.ts";

const timeouts = { lockTimeoutMs: 1_000, statementTimeoutMs: 5_000 };

async function openNotes() {
  const { databaseUrl, rows } = await openTestbed();
  await rows("create table notes (id int, transaction xid8 default pg_current_xact_id())");
  return {
    databaseUrl,
    rows,
    /** How many notes of each, and of how many transactions. */
    notes: () =>
      rows(`select id, count(*)::int as notes, count(distinct transaction)::int as of
        from notes group by id order by id`),
    open: async (url = databaseUrl) => {
      const database = { connectionString: url, pipeline: true, prepare: true };
      const db = await connect(database, new AbortController().signal);
      onTestFinished(() => db.close());
      return db;
    },
  };
}

/** Fails outside of a transaction that was begun, as the contract wants it of the first. */
const begun = (id: number): Write => sql`
  insert into notes (id) select ${id}::int where 1 / (${insideTransaction})::int = 1`;
const note = (id: number): Write => sql`insert into notes (id) values (${id}::int)`;
const whole = (id: number) => ({ id, notes: 2, of: 1 });

test("each is a transaction of its own, and all are one round trip", async () => {
  const { open, notes } = await openNotes();
  const db = await open();
  const ends = await eachInOneFlight(
    db,
    timeouts,
    [1, 2, 3].map((id) => [begun(id), note(id)]),
  );
  expect(ends).toEqual([undefined, undefined, undefined]);
  expect(await notes()).toEqual([whole(1), whole(2), whole(3)]);
});

test.each([
  ["a write that Postgres refuses", sql`select 1 / 0`, { at: 1, state: "22012" }],
  ["one that cannot be sent", sql`select ${() => 1}::text`, { at: 2, state: null }],
])("%s rolls back its own, wherever it stands", async (_, unfit, { at, state }) => {
  const { open, notes } = await openNotes();
  const ends = await eachInOneFlight(
    await open(),
    timeouts,
    [1, 2, 3, 4, 5].map((id) => [begun(id), id % 2 === 1 ? unfit : note(id)]),
  );
  const told = ends.map((end) => end && { at: end.at, state: sqlStateOf(end.error) });
  const failed = { at, state };
  expect(told).toEqual([failed, undefined, failed, undefined, failed]);
  expect(await notes()).toEqual([whole(2), whole(4)]);
});

test("one that fails at COMMIT says so, and only that one", async () => {
  const { open, notes, rows } = await openNotes();
  await rows("create table once (id int unique deferrable initially deferred)");
  const ends = await eachInOneFlight(
    await open(),
    timeouts,
    [1, 1, 2].map((id) => [begun(id), sql`insert into once values (${id}::int), (1)`]),
  );
  expect(ends.map((end) => end && [end.at, sqlStateOf(end.error)])).toEqual([
    [2, "23505"],
    [2, "23505"],
    undefined,
  ]);
  expect(await notes()).toEqual([{ id: 2, notes: 1, of: 1 }]);
});

test("a BEGIN that is lost on its way lets nothing commit by itself", async () => {
  const { open, notes, databaseUrl } = await openNotes();
  let begins = 0;
  await using proxy = await startProxy(databaseUrl, {
    fate: ({ from, type, bytes }) => {
      const text = bytes.toString("latin1");
      const isSecond =
        from === "client" && type === "Q" && text.includes("begin") && ++begins === 2;
      return isSecond ? { instead: Buffer.from(text.replace("begin", "bogus"), "latin1") } : "pass";
    },
  });
  const ends = await eachInOneFlight(
    await open(proxy.route(databaseUrl)),
    timeouts,
    [1, 2, 3].map((id) => [begun(id), note(id)]),
  );
  expect(ends.map((end) => end?.at)).toEqual([undefined, -1, undefined]);
  expect(await notes()).toEqual([whole(1), whole(3)]);
});

test("of none, nothing is sent", async () => {
  const { open } = await openNotes();
  expect(await eachInOneFlight(await open(), timeouts, [])).toEqual([]);
});

test.each([
  ["is gone", "delete from webhook_inbox"],
  ["somebody else claimed", "update webhook_inbox set fence = fence + 1"],
  ["is settled", "update webhook_inbox set processed_at = now(), outcome = 'processed'"],
  ["is parked", "update webhook_inbox set parked_at = now(), last_error = 'Crashed'"],
])("a mark of a row that %s ends its transaction, and changes nothing", async (_, change) => {
  const inbox = await openTestbed();
  const { id: eventId } = await waits(inbox);
  await inbox.rows(change);
  const before = await inbox.rows("select * from webhook_inbox");
  const db = await connect(
    { connectionString: inbox.databaseUrl, pipeline: true, prepare: true },
    new AbortController().signal,
  );
  onTestFinished(() => db.close());
  const [end] = await eachInOneFlight(db, timeouts, [
    [markOrFail({ endpoint: "billing", eventId, fence: 0 })],
  ]);
  expect({ at: end?.at, state: sqlStateOf(end?.error) }).toEqual({ at: 0, state: NOT_MARKED });
  expect(await inbox.rows("select * from webhook_inbox")).toEqual(before);
});

/** Retention takes what is settled and old enough, in batches, and nothing else. */
import { expect, test } from "vitest";
import worker from "../../src/index.ts";
import { retain } from "../../src/retain.ts";
import { anInvoiceEvent, collectingContext, openTestbed, roadTo, type Testbed } from "./testbed.ts";
import { waits } from "./waiting.ts";

const NOTHING = { payloads: 0, tombstones: 0, messages: 0, calls: 0, gaps: 0, sweeps: 0, hours: 0 };

/** One night's run over the testbed's database. */
async function night(inbox: Testbed, env: Record<string, string> = {}) {
  const { ctx, settled } = collectingContext();
  const { counts } = await retain({ ...roadTo(inbox.databaseUrl), ...env }, (rest) =>
    ctx.waitUntil(rest),
  );
  await settled();
  return counts;
}

/** A processed event that was settled so many days ago, a minute more or less. */
async function settledAgo(inbox: Testbed, days: number, minutes: number): Promise<string> {
  const event = await waits(inbox);
  await inbox.rows(
    `update webhook_inbox set outcome = 'processed', processed_at =
      now() - $2::int * interval '1 day' - $3::int * interval '1 minute' where event_id = $1`,
    [event.id, days, minutes],
  );
  return event.id;
}

async function payloads(inbox: Testbed): Promise<Record<string, boolean>> {
  const rows = await inbox.rows("select event_id, payload is not null as kept from webhook_inbox");
  return Object.fromEntries(rows.map(({ event_id, kept }) => [event_id, kept === true]));
}

test("an empty inbox is a night without work", async () => {
  const inbox = await openTestbed();
  expect(await night(inbox)).toEqual(NOTHING);
});

test("payloads go after 30 days and keys after 90, to the minute", async () => {
  const inbox = await openTestbed();
  const young = await settledAgo(inbox, 30, -1);
  const old = await settledAgo(inbox, 30, 1);
  const tombstone = await settledAgo(inbox, 90, -1);
  const gone = await settledAgo(inbox, 90, 1);
  expect(await night(inbox)).toEqual({ ...NOTHING, payloads: 3, tombstones: 1 });
  expect(await payloads(inbox)).toEqual({ [young]: true, [old]: false, [tombstone]: false });
  expect(gone in (await payloads(inbox))).toBe(false);
});

test("other limits are settings", async () => {
  const inbox = await openTestbed();
  await settledAgo(inbox, 2, 1);
  expect(await night(inbox, { RETENTION_DAYS: "2", TOMBSTONE_DAYS: "3" })).toMatchObject({
    payloads: 1,
    tombstones: 0,
  });
  expect(await night(inbox, { RETENTION_DAYS: "2", TOMBSTONE_DAYS: "2" })).toMatchObject({
    payloads: 0,
    tombstones: 1,
  });
});

test("what waits, or needs review, stays whole however old it is", async () => {
  const inbox = await openTestbed();
  const waiting = await waits(inbox);
  const parked = await waits(inbox);
  await inbox.rows(
    "update webhook_inbox set parked_at = now() - interval '1 year', last_error = 'x' where event_id = $1",
    [parked.id],
  );
  await inbox.rows("update webhook_inbox set received_at = now() - interval '1 year'");
  expect(await night(inbox)).toEqual(NOTHING);
  expect(await payloads(inbox)).toEqual({ [waiting.id]: true, [parked.id]: true });
});

test("messages go 30 days after they are done, their calls 90; what is not done stays", async () => {
  const inbox = await openTestbed();
  const message = (published: string, done: string) =>
    inbox.rows(`insert into outbox (aggregate_type, aggregate_id, event_type, payload, created_at,
      published_at, done_at) values ('Invoice', 'in_1', 'x', '{}', now() - interval '1 year',
      ${published}, ${done})`);
  const long = "now() - interval '1 year'";
  await message(long, "now() - interval '30 days 1 minute'");
  await message(long, "now() - interval '29 days 23 hours 59 minutes'");
  await message(long, "null");
  await message("null", "null");
  const call = (key: string, done: string) =>
    inbox.rows(`insert into call_journal (key, message_id, state, attempts, available_at, done_at,
      result) values ('${key}', 1, 'done', 1, now(), now() - interval '${done}', 'updated')`);
  await call("old", "90 days 1 minute");
  await call("young", "89 days 23 hours 59 minutes");
  await inbox.rows(`insert into call_journal (key, message_id, state, attempts, available_at)
    values ('under way', 1, 'calling', 1, ${long})`);
  expect(await night(inbox)).toMatchObject({ messages: 1, calls: 1 });
  expect(await inbox.books()).toMatchObject({ messages: 3 });
  expect(await inbox.rows("select key from call_journal order by key")).toEqual([
    { key: "under way" },
    { key: "young" },
  ]);
});

test("a call is known for as long as a queue may keep a copy of its message, whatever is set", async () => {
  const inbox = await openTestbed();
  await inbox.rows(`insert into call_journal (key, message_id, state, attempts, available_at,
    done_at, result) values ('copy', 1, 'done', 1, now(), now() - interval '14 days', 'updated'),
    ('old', 2, 'done', 1, now(), now() - interval '15 days 1 minute', 'updated')`);
  const env = { RETENTION_DAYS: "1", TOMBSTONE_DAYS: "1" };
  expect(await night(inbox, env)).toMatchObject({ calls: 1 });
  expect(await inbox.rows("select key from call_journal")).toEqual([{ key: "copy" }]);
});

test("gaps go after 90 days, and so do sweeps, but never the last complete one of an account", async () => {
  const inbox = await openTestbed();
  const gap = (id: string, found: string) =>
    inbox.rows(`insert into sweep_gaps (endpoint, event_id, event_type, created_at, found_at, run_id)
      values ('billing', '${id}', 'invoice.paid', now(), now() - interval '${found}', 1)`);
  await gap("old", "90 days 1 minute");
  await gap("young", "89 days 23 hours 59 minutes");
  const sweep = (account: string, ago: string, complete = true) =>
    inbox.rows(`insert into sweep_runs (account, window_from, window_to, completed_at)
      values ('${account}', now() - interval '1 year', now() - interval '${ago}',
        ${complete ? `now() - interval '${ago}'` : "null"})`);
  await sweep("own", "200 days");
  await sweep("own", "91 days");
  await sweep("own", "80 days");
  await sweep("acct_gone", "200 days");
  await sweep("acct_stuck", "200 days", false);
  expect(await night(inbox)).toEqual({ ...NOTHING, gaps: 1, sweeps: 2 });
  expect(await inbox.rows("select event_id from sweep_gaps")).toEqual([{ event_id: "young" }]);
  expect(await inbox.rows("select account from sweep_runs order by id")).toEqual([
    { account: "own" },
    { account: "acct_gone" },
    { account: "acct_stuck" },
  ]);
});

test("more than one batch is purged in one night", async () => {
  const inbox = await openTestbed();
  await inbox.rows(`insert into webhook_inbox (endpoint, event_id, event_type, payload, processed_at, outcome)
    select 'billing', 'evt_' || n, 'invoice.paid', '{}', now() - interval '91 days', 'processed'
    from generate_series(1, 2500) n`);
  expect(await night(inbox)).toEqual({ ...NOTHING, payloads: 2500, tombstones: 2500 });
});

test("an event that comes again after its key is gone is recorded, and books nothing", async () => {
  const inbox = await openTestbed();
  const event = anInvoiceEvent();
  await inbox.deliver(event);
  await inbox.rows("update webhook_inbox set processed_at = now() - interval '1 year'");
  expect(await night(inbox)).toMatchObject({ tombstones: 1 });
  expect(await inbox.deliver(event)).toMatchObject({ status: 200, outcome: "processed" });
  expect(await inbox.books()).toMatchObject({ inbox: 1, entries: 1, messages: 1 });
});

test("the nightly schedule retains, every other one is a tick", async () => {
  const inbox = await openTestbed();
  await settledAgo(inbox, 31, 0);
  await waits(inbox);
  const env = roadTo(inbox.databaseUrl);
  const run = async (cron: string): Promise<void> => {
    const { ctx, settled } = collectingContext();
    await worker.scheduled({ cron }, env, ctx);
    await settled();
  };
  await run("17 3 * * *");
  expect(new Set(Object.values(await payloads(inbox)))).toEqual(new Set([false, true]));
  expect(await inbox.books()).toMatchObject({ entries: 0 });
  await run("* * * * *");
  expect(await inbox.books()).toMatchObject({ entries: 1 });
});

test("counts of hours go after 90 days", async () => {
  const inbox = await openTestbed();
  await inbox.rows(`
    insert into inbox_hours (hour, endpoint, event_type, ignored_reason, received, duplicates, settled)
    select now() - n * interval '1 day', 'billing', 'invoice.paid', '', 1, 0, 1
    from generate_series(88, 93) as n`);
  expect(await night(inbox)).toEqual({ ...NOTHING, hours: 4 });
  expect(await night(inbox)).toEqual(NOTHING);
  expect(await inbox.rows("select 1 from inbox_hours")).toHaveLength(2);
});

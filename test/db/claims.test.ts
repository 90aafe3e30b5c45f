/** A claim takes what is due, oldest first, no more than it asked for, and from nobody else. */
import { sql } from "drizzle-orm";
import { describe, expect, test } from "vitest";
import type { Connection } from "../../src/db/connect.ts";
import { inOneFlight } from "../../src/db/transaction.ts";
import * as transitions from "../../src/inbox/transitions.ts";
import { bookAfter } from "../worker/disturbances.ts";
import { openTestbed } from "../worker/testbed.ts";
import { waits } from "../worker/waiting.ts";
import { dueRows, LEASE_SECONDS, openConnection, openHolder } from "./holders.ts";

const timeouts = { lockTimeoutMs: 10_000, statementTimeoutMs: 30_000 };

// In the last one, `where … in (select … limit 7 …)` would run its SELECT for every row: it claims all.
describe.each([
  ["a hash join", "Hash Join", ["mergejoin", "nestloop"]],
  ["a merge join", "Merge Join", ["hashjoin", "nestloop"]],
  ["a nested loop", "Nested Loop", ["hashjoin", "mergejoin"]],
  [
    "a nested loop that keeps nothing",
    "Nested Loop",
    ["hashjoin", "mergejoin", "material", "hashagg", "sort"],
  ],
])("when the planner chooses %s", (_, node, off) => {
  test.each(["fresh", "suspects"] as const)("a claim takes its limit, of %s", async (which) => {
    const inbox = await openTestbed();
    for (const plan of off) {
      await inbox.rows(`do $$ begin
        execute format('alter database %I set enable_${plan} = off', current_database());
      end $$`);
    }
    await dueRows(inbox, 200);
    if (which === "suspects") await inbox.rows("update webhook_inbox set attempts = 1");
    const holder = await openHolder(inbox);
    expect(await planOf(holder.db, which)).toContain(node);
    expect(await holder.claim(7, which)).toHaveLength(7);
    expect(await inbox.rows("select count(*)::int from webhook_inbox where fence > 0")).toEqual([
      { count: 7 },
    ]);
    expect(await holder.claim(1_000, which)).toHaveLength(193);
    expect(await holder.claim(1_000, which)).toEqual([]);
  });
});

async function planOf(db: Connection, which: "fresh" | "suspects"): Promise<string> {
  const { text, values } = db.compile(transitions.claimDue(which, 7, LEASE_SECONDS));
  const [explained] = db.send([{ text: `explain ${text}`, values: values ?? [] }]);
  return JSON.stringify((await explained)?.rows);
}

test("the longest due come first", async () => {
  const inbox = await openTestbed();
  const dueFor = async (seconds: number) => (await waits(inbox, { availableIn: -seconds })).id;
  const due = [await dueFor(20), await dueFor(50), await dueFor(10), await dueFor(40)];
  const holder = await openHolder(inbox);
  const takeTwo = async () => new Set((await holder.claim(2)).map(({ eventId }) => eventId));
  expect(await takeTwo()).toEqual(new Set([due[1], due[3]]));
  expect(await takeTwo()).toEqual(new Set([due[0], due[2]]));
});

test.each([
  ["processed", "processed_at = now(), outcome = 'processed'"],
  ["ignored", "processed_at = now(), outcome = 'ignored', ignored_reason = 'livemode'"],
  ["parked", "parked_at = now(), last_error = 'TypeError'"],
  ["leased", "attempts = 1, available_at = now() + interval '20 seconds'"],
  ["backing off", "attempts = 1, last_error = '57P01', available_at = now() + interval '1 minute'"],
])("what is %s is not claimed, its neighbour is", async (_, change) => {
  const inbox = await openTestbed();
  const event = await waits(inbox);
  await inbox.rows(`update webhook_inbox set ${change}`);
  const neighbour = await waits(inbox);
  const holder = await openHolder(inbox);
  const claims = [...(await holder.claim()), ...(await holder.claim(10, "suspects"))];
  expect(claims.map(({ eventId }) => eventId)).toEqual([neighbour.id]);
  const row = `select attempts, fence::int from webhook_inbox where event_id = '${event.id}'`;
  expect(await inbox.rows(row)).toEqual([expect.objectContaining({ fence: 0 })]);
});

test("what is due at this very moment is claimed, what is due a microsecond later is not", async () => {
  const inbox = await openTestbed();
  await dueRows(inbox, 2);
  const db = await openConnection(inbox.databaseUrl);
  // One transaction, in which now() stands still.
  const [, claimed] = await inOneFlight(db, timeouts, [
    sql`update webhook_inbox set available_at = now()
      + case event_id when 'evt_due0002' then interval '1 microsecond' else '0' end`,
    transitions.claimDue("fresh", 10, LEASE_SECONDS),
  ]);
  expect(claimed).toEqual([expect.objectContaining({ event_id: "evt_due0001" })]);
});

test("a claim counts the attempt, clears the record of the last one, and says so to everybody before any work", async () => {
  const seen: unknown[] = [];
  const look = async () => {
    seen.push(
      ...(await inbox.rows(
        `select attempts, fence::int, last_error, processed_at, available_at > now()
          + interval '100 seconds' as leased from webhook_inbox`,
      )),
    );
  };
  const inbox = await openTestbed({ endpoints: bookAfter(look) });
  await waits(inbox, { attempts: 4, lastError: "TypeError" });
  await inbox.rows("update webhook_inbox set fence = 7");
  expect(await inbox.tick()).toMatchObject({ processed: 1 });
  expect(seen).toEqual([
    { attempts: 5, fence: 8, last_error: null, processed_at: null, leased: true },
  ]);
});

test("a payload that cannot be read is no obstacle to a claim, and the claim leaves it alone", async () => {
  const inbox = await openTestbed();
  await dueRows(inbox, 3);
  // As text it would be longer than any text can be.
  await inbox.rows(
    `update webhook_inbox
      set payload = ('{ "n": [' || repeat('1e131071, ', 8300) || '0] }')::jsonb
      where event_id = 'evt_due0002'`,
  );
  const holder = await openHolder(inbox);
  const claims = await holder.claim();
  expect(new Set(claims.map(({ eventId }) => eventId)).size).toBe(3);
  for (const claim of claims)
    expect(Object.keys(claim)).toEqual(["endpoint", "eventId", "fence", "isFirst"]);
});

test("in a transaction that began long ago, the lease counts from the claim", async () => {
  const inbox = await openTestbed();
  await dueRows(inbox, 1);
  const db = await openConnection(inbox.databaseUrl);
  const [, , clock, claimed] = await inOneFlight(db, timeouts, [
    sql`select pg_sleep(1.2)`,
    sql`create temporary table asked as select clock_timestamp() as at`,
    sql`select extract(epoch from clock_timestamp() - now())::float8 as age`,
    transitions.claimDue("fresh", 10, 60),
  ]);
  expect(claimed).toHaveLength(1);
  expect(clock?.[0]?.["age"]).toBeGreaterThan(1);
  const [leases] = await inOneFlight(db, timeouts, [
    sql`select extract(epoch from available_at - asked.at)::float8 as seconds
      from webhook_inbox, asked`,
  ]);
  expect(leases?.[0]?.["seconds"]).toBeGreaterThanOrEqual(60);
  expect(leases?.[0]?.["seconds"]).toBeLessThan(70);
});

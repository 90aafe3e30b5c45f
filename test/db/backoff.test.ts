/** Events that fail together do not come back together: their next attempts are spread, and capped. */
import { sql } from "drizzle-orm";
import { describe, expect, test } from "vitest";
import { inOneFlight } from "../../src/db/transaction.ts";
import * as transitions from "../../src/inbox/transitions.ts";
import { bookAfter } from "../worker/disturbances.ts";
import { openTestbed } from "../worker/testbed.ts";
import { manyWait } from "../worker/waiting.ts";
import { dueRows, openHolder } from "./holders.ts";

const timeouts = { lockTimeoutMs: 10_000, statementTimeoutMs: 30_000 };

describe("a hundred events that fail at the same moment", () => {
  test.each([
    [1, 300, 2],
    [5, 300, 32],
    [8, 300, 256],
    [9, 300, 300],
    [1_000, 300, 300],
    [3, 7, 7],
  ])("at attempt %i, capped at %i s, wait anything up to %i s", async (attempt, cap, longest) => {
    const inbox = await openTestbed();
    await dueRows(inbox, 100);
    await inbox.rows("update webhook_inbox set attempts = $1, last_error = 'TypeError'", [
      attempt - 1,
    ]);
    const holder = await openHolder(inbox);
    const failure = { code: "TypeError", parksAtAttempt: 2_000, backoffCapSeconds: cap };
    // In one transaction, so that they all fail at the same now().
    const records = (await holder.claim(100)).map((claim) =>
      transitions.recordClaimedFailure(claim, failure),
    );
    const results = await inOneFlight(holder.db, timeouts, [
      ...records,
      sql`select extract(epoch from available_at - now())::float8 as seconds from webhook_inbox`,
    ]);
    const waits = (results.at(-1) ?? []).map((row) => Number(row["seconds"]) / longest);
    expect(waits).toHaveLength(100);
    expect(Math.min(...waits)).toBeGreaterThanOrEqual(0);
    expect(Math.max(...waits)).toBeLessThanOrEqual(1);
    // Evenly, each of these is missed once in a hundred million runs.
    expect(Math.min(...waits)).toBeLessThan(0.2);
    expect(Math.max(...waits)).toBeGreaterThan(0.8);
    expect(new Set(waits).size).toBeGreaterThan(90);
  });
});

test("a hundred events that one tick fails are due again at times of their own, within the cap", async () => {
  const endpoints = bookAfter(() => Promise.reject(new TypeError("It fails for everything.")));
  const inbox = await openTestbed({ endpoints, env: { BACKOFF_CAP_SECONDS: "20" } });
  await manyWait(inbox, 100, { attempts: 7, lastError: "TypeError" });
  // One whose wait is short may come back, and fail again, in the same tick.
  expect((await inbox.tick()).failed).toBeGreaterThanOrEqual(100);
  const [spread] = await inbox.rows(
    `select count(distinct available_at)::int as times,
      max(available_at) <= now() + interval '20 seconds' as capped,
      max(available_at) - min(available_at) > interval '10 seconds' as wide from webhook_inbox`,
  );
  expect(spread).toEqual({ times: 100, capped: true, wide: true });
});

test("a failure that does not count backs off by the age of the event, within the cap", async () => {
  const inbox = await openTestbed();
  await dueRows(inbox, 100);
  await inbox.rows("update webhook_inbox set received_at = now() - interval '60 seconds'");
  const holder = await openHolder(inbox);
  const failure = { code: "53100", parksAtAttempt: null, backoffCapSeconds: 300 };
  const records = (await holder.claim(100)).map((claim) =>
    transitions.recordClaimedFailure(claim, failure),
  );
  const results = await inOneFlight(holder.db, timeouts, [
    ...records,
    sql`select attempts, extract(epoch from available_at - now())::float8 as seconds
      from webhook_inbox`,
  ]);
  const rows = results.at(-1) ?? [];
  expect(new Set(rows.map(({ attempts }) => attempts))).toEqual(new Set([0]));
  const longest = Math.max(...rows.map(({ seconds }) => Number(seconds)));
  expect(longest).toBeGreaterThan(30);
  expect(longest).toBeLessThan(120);
});

/** What runs of the cron leave word of: when they were, how they ended, and what an hour brought. */
import { describe, expect, test } from "vitest";
import { logLines } from "../worker/testbed.ts";
import { waits } from "../worker/waiting.ts";
import { NIGHT, TICK, type Watched, watched } from "./watched.ts";

const counted = ({ inbox }: Watched, since: unknown) =>
  inbox.rows(
    `select extract(epoch from $1::timestamptz - hour)::int / 3600 as ago, endpoint,
    event_type as type, ignored_reason as reason, received, duplicates, settled, p50_seconds as p50,
    p99_seconds as p99 from inbox_hours order by hour, endpoint, event_type, reason`,
    [since],
  );

/** The beginning of an hour, such that all before it are long enough over to be counted. */
const anchor = async ({ inbox }: Watched) => {
  const [row] = await inbox.rows("select date_trunc('hour', now() - interval '3 min') as anchor");
  return row?.["anchor"];
};

const beats = ({ inbox }: Watched) =>
  inbox.rows(`select name, completed_at is not null as complete, completed_at >= started_at as after,
    detail from heartbeats where name in ('tick', 'retention') order by name`);

describe("heartbeats", () => {
  test("say when the last tick and the last nightly run were, and what they did", async () => {
    const system = await watched({ STRIPE_LIVEMODE: "false" });
    await waits(system.inbox);
    await system.cron();
    await system.cron(NIGHT);
    expect(await beats(system)).toEqual([
      {
        name: "retention",
        complete: true,
        after: true,
        detail: expect.objectContaining({ payloads: 0, hours: 0 }),
      },
      {
        name: "tick",
        complete: true,
        after: true,
        detail: expect.objectContaining({ processed: 1 }),
      },
    ]);
  });

  test("keep the time of the last run that did not fail, and say why this one did", async () => {
    const system = await watched();
    await system.cron();
    await system.inbox.rows("update heartbeats set completed_at = now() - interval '1 hour'");
    await system.cron(TICK, { MAX_ATTEMPTS: "none" });
    const [beat] = await system.inbox.rows(`select started_at > now() - interval '1 min' as begun,
      completed_at < now() - interval '59 min' as complete_before, detail from heartbeats where name = 'tick'`);
    expect(beat).toEqual({
      begun: true,
      complete_before: true,
      detail: expect.objectContaining({ error: "InvalidSetting", setting: "MAX_ATTEMPTS" }),
    });
  });
});

test("a tick works also where its heartbeat cannot be written", async () => {
  const system = await watched({ STRIPE_LIVEMODE: "false" });
  await waits(system.inbox);
  await system.inbox.rows("drop table heartbeats, alert_states, inbox_hours");
  const lines = await logLines(() => system.cron());
  expect(lines).toContainEqual(expect.objectContaining({ message: "tick", processed: 1 }));
  expect(lines).toContainEqual(expect.objectContaining({ message: "watch", sqlstate: "42P01" }));
});

describe("hours", () => {
  test("that are over are counted once, by endpoint, type and reason, with the times they took", async () => {
    const system = await watched();
    const hour = await anchor(system);
    const row = `insert into webhook_inbox (endpoint, event_id, event_type, payload, received_at, duplicates,
      processed_at, outcome, ignored_reason)
      select 'billing', $1 || n, $2, '{}', $6::timestamptz - $3::interval, 1,
        $6::timestamptz - $3::interval + n * interval '1 s',
        case when $4::text is null then 'processed' else 'ignored' end, $4
      from generate_series(1, $5::int) n`;
    await system.inbox.rows(row, ["evt_a", "invoice.paid", "2 hours", null, 3, hour]);
    await system.inbox.rows(row, ["evt_b", "charge.updated", "90 min", "no_handler", 2, hour]);
    await system.inbox.rows(row, ["evt_c", "invoice.paid", "30 hours", null, 2, hour]);
    await system.inbox.rows(
      "update webhook_inbox set processed_at = $1::timestamptz - interval '30 min' where event_id = 'evt_a3'",
      [hour],
    );
    // Not over yet.
    await system.inbox.rows(row, ["evt_d", "invoice.paid", "0 s", null, 1, new Date()]);
    for (let n = 0; n < 2; n++) await system.cron();
    const hours = await counted(system, hour);
    expect(hours.filter(({ type }) => type !== "")).toEqual([
      {
        ago: 2,
        endpoint: "billing",
        type: "charge.updated",
        reason: "no_handler",
        received: 2,
        duplicates: 2,
        settled: 2,
        p50: null,
        p99: null,
      },
      {
        ago: 2,
        endpoint: "billing",
        type: "invoice.paid",
        reason: "",
        received: 3,
        duplicates: 3,
        settled: 2,
        p50: 1.5,
        p99: 1.99,
      },
      {
        ago: 1,
        endpoint: "billing",
        type: "invoice.paid",
        reason: "",
        received: 0,
        duplicates: 0,
        settled: 1,
        p50: 5400,
        p99: 5400,
      },
    ]);
    expect(hours.filter(({ type }) => type === "")).not.toHaveLength(0);
    expect(hours.find(({ ago, type }) => ago === 2 && type === "")).toMatchObject({
      received: 5,
      duplicates: 5,
      settled: 4,
      p50: 1.5,
    });
  });

  test("are counted by one of the ticks that overlap", async () => {
    const system = await watched();
    const hour = await anchor(system);
    await system.inbox.rows(
      `insert into webhook_inbox (endpoint, event_id, event_type, payload, received_at,
        processed_at, outcome)
      select 'billing', 'evt_' || n, 'invoice.paid', '{}', at, at, 'processed'
      from generate_series(1, 20) n cross join lateral (
        select $1::timestamptz - n * interval '1 hour' as at) t`,
      [hour],
    );
    const lines = await logLines(() => Promise.all(Array.from({ length: 4 }, () => system.cron())));
    expect(lines.filter(({ message }) => message === "watch")).toEqual([]);
    const hours = await counted(system, hour);
    expect(hours.filter(({ type }) => type !== "")).toHaveLength(20);
    for (const { received, settled } of hours.filter(({ type }) => type !== "")) {
      expect([received, settled]).toEqual([1, 1]);
    }
    const [until] = await system.inbox.rows(
      `select (detail ->> 'until')::timestamptz > now() - interval '65 min' as done from heartbeats where name = 'hours'`,
    );
    expect(until).toEqual({ done: true });
  });
});

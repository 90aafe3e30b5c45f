/** The figures that a person on call reads, as JSON and as Prometheus does. */
import { beforeAll, describe, expect, test } from "vitest";
import { anOperator, type Operator } from "./operator.ts";
import { anInvoiceEvent, freshId } from "./testbed.ts";
import { waits } from "./waiting.ts";

test("an empty inbox has nothing to say; but that no tick was ever seen", async () => {
  const { status, body } = await (await anOperator()).get("/ops/api/figures");
  expect(status).toBe(200);
  expect(body).toEqual({
    inbox: {
      waiting: { count: 0, more: false },
      oldest_waiting_seconds: null,
      waiting_by_reason: [],
      needs_review: { count: 0, more: false },
      needs_review_by_reason: [],
    },
    outbox: {
      waiting: { count: 0, more: false },
      oldest_waiting_seconds: null,
      not_done: { count: 0, more: false },
      oldest_not_done_seconds: null,
      messages_in_review: [],
      calls_in_review: [],
    },
    reconciliation: { sweeps: [], gaps_last_day: [], open_discrepancies: [] },
    heartbeats: { tick: null, retention: null },
    last_hour: {
      received: 0,
      duplicates: 0,
      duplicates_share: null,
      processed: 0,
      ignored: [],
      truncated: false,
      by_type: [],
      by_minute: [],
      processing_seconds: [],
    },
    last_day: {
      counted_until: null,
      received: 0,
      duplicates: 0,
      processed: 0,
      ignored: [],
      by_hour: [],
      by_type: [],
    },
    processing: "on",
    alerts: expect.arrayContaining([
      expect.objectContaining({ name: "backlog_too_old", firing: false, todo: null }),
    ]),
  });
  expect(body.alerts.map(({ name }: { name: string }) => name)).toEqual([
    "ticks_failing",
    "backlog_too_old",
    "review_grew",
    "discrepancies_grew",
    "outbox_stuck",
  ]);
  expect(body.alerts.filter(({ firing }: { firing: boolean }) => firing)).toEqual([
    expect.objectContaining({ name: "ticks_failing", summary: "No tick was ever seen." }),
  ]);
});

test("what waits is counted, with the age of the oldest and what it failed with; what is settled or parked is not", async () => {
  const { inbox, get } = await anOperator();
  await inbox.deliver(anInvoiceEvent());
  await inbox.deliver(anInvoiceEvent("invoice.paid", { amountPaid: -1 }));
  const older = await waits(inbox);
  await waits(inbox, { attempts: 1, availableIn: 60 });
  await inbox.rows(
    "update webhook_inbox set received_at = now() - interval '1 hour', last_error = 'TypeError' where event_id = $1",
    [older.id],
  );
  const { body } = await get("/ops/api/figures");
  expect(body.inbox).toMatchObject({
    waiting: { count: 2, more: false },
    waiting_by_reason: expect.arrayContaining([
      { reason: null, events: 1, oldest_seconds: expect.any(Number) },
      { reason: "TypeError", events: 1, oldest_seconds: expect.closeTo(3_600, -2) },
    ]),
  });
  expect(body.inbox.oldest_waiting_seconds).toBeGreaterThanOrEqual(3_600);
  expect(body.inbox.oldest_waiting_seconds).toBeLessThan(3_660);
});

test("an old event that was requeued waits from then on; one that fails again does not", async () => {
  const { inbox, get, send } = await anOperator();
  const event = anInvoiceEvent("invoice.paid", { amountPaid: -1 });
  await inbox.deliver(event);
  await inbox.rows("update webhook_inbox set received_at = now() - interval '2 days'");
  await send("/ops/api/events/requeue", { event_id: event.id, count: 1, why: "mended" });
  expect((await get("/ops/api/figures")).body.inbox.oldest_waiting_seconds).toBeLessThan(60);
  // A tick has it, and then lets its lease pass.
  await inbox.rows(
    `update webhook_inbox set attempts = 1, fence = fence + 1, available_at = now() + interval '2 minutes'`,
  );
  expect((await get("/ops/api/figures")).body.inbox.oldest_waiting_seconds).toBeLessThan(1);
  await inbox.rows("update webhook_inbox set available_at = now() - interval '1 hour'");
  expect((await get("/ops/api/figures")).body.inbox.oldest_waiting_seconds).toBeGreaterThan(3_500);
  await inbox.rows("update webhook_inbox set last_error = '40001'");
  expect((await get("/ops/api/figures")).body.inbox.oldest_waiting_seconds).toBeGreaterThan(
    172_000,
  );
});

test("that processing is paused is said", async () => {
  const { get } = await anOperator({ env: { PROCESSING: "paused" } });
  const { body } = await get("/ops/api/figures");
  expect(body.processing).toBe("paused");
  expect(body.alerts).toContainEqual(
    expect.objectContaining({
      name: "backlog_too_old",
      firing: false,
      summary: "Processing is paused; no event waits for long yet.",
      todo: expect.stringContaining("PROCESSING"),
    }),
  );
  expect((await get("/metrics")).text).toContain("\nstripe_inbox_processing 0\n");
});

test("what needs review is told by its reason, the commonest first, with the age of the oldest", async () => {
  const { inbox, get } = await anOperator();
  for (const facts of [{ amountPaid: -1 }, { amountPaid: -2 }, { status: "open" } as const]) {
    await inbox.deliver(anInvoiceEvent("invoice.paid", facts));
  }
  await inbox.rows("update webhook_inbox set received_at = now() - interval '100 s'");
  const { body } = await get("/ops/api/figures");
  expect(body.inbox.needs_review).toEqual({ count: 3, more: false });
  expect(body.inbox.needs_review_by_reason).toEqual([
    {
      reason: "PermanentError:amount_paid_unusable",
      events: { count: 2, more: false },
      oldest_seconds: expect.closeTo(100, -1),
    },
    {
      reason: "PermanentError:paid_event_of_unpaid_invoice",
      events: { count: 1, more: false },
      oldest_seconds: expect.closeTo(100, -1),
    },
  ]);
  expect(body.alerts).toContainEqual(
    expect.objectContaining({ name: "review_grew", firing: true, level: 3 }),
  );
});

describe("the last hour", () => {
  let operator: Operator;
  beforeAll(async () => {
    operator = await anOperator();
    const { inbox } = operator;
    const event = anInvoiceEvent();
    for (let n = 0; n < 4; n++) await inbox.deliver(event);
    await inbox.deliver({ ...anInvoiceEvent(), type: "customer.updated" });
    await inbox.deliver({ ...anInvoiceEvent(), account: "acct_other" });
    const earlier = await waits(inbox);
    await inbox.rows(
      "update webhook_inbox set received_at = now() - interval '61 minutes' where event_id = $1",
      [earlier.id],
    );
    await inbox.tick();
  });

  test("tells what was received, processed and ignored, and the share of duplicates", async () => {
    const { body } = await operator.get("/ops/api/figures");
    expect(body.last_hour).toMatchObject({
      received: 3,
      duplicates: 3,
      duplicates_share: 0.5,
      // The one that came before is processed now.
      processed: 2,
      ignored: expect.arrayContaining([
        { reason: "no_handler", events: 1 },
        { reason: "account", events: 1 },
      ]),
      truncated: false,
    });
  });

  test("tells it by endpoint and type, and by minute", async () => {
    const { body } = await operator.get("/ops/api/figures");
    const { by_type, by_minute } = body.last_hour;
    expect(by_type).toEqual([
      { endpoint: "billing", type: "invoice.paid", received: 2, processed: 2, ignored: 1 },
      { endpoint: "billing", type: "customer.updated", received: 1, processed: 0, ignored: 1 },
    ]);
    const sum = (what: string): number =>
      by_minute.reduce((total: number, minute: Record<string, number>) => {
        return total + (minute[what] ?? 0);
      }, 0);
    expect([sum("received"), sum("processed"), sum("ignored")]).toEqual([3, 2, 2]);
    for (const { minute } of by_minute) expect(minute).toMatch(/:00\.000Z$/);
  });

  test("tells it by minute and type, to whoever asks for that", async () => {
    const { body } = await operator.get("/ops/api/rates?per=minute&type=invoice.paid");
    for (const rate of body.rates) {
      expect(rate).toMatchObject({ endpoint: "billing", type: "invoice.paid" });
    }
    const sum = (what: string): number =>
      body.rates.reduce(
        (total: number, rate: Record<string, number>) => total + (rate[what] ?? 0),
        0,
      );
    expect([sum("received"), sum("processed"), sum("ignored")]).toEqual([2, 2, 1]);
    expect((await operator.get("/ops/api/rates?per=minute&endpoint=connect")).body).toEqual({
      rates: [],
    });
    expect((await operator.get("/ops/api/rates?per=day")).body.error).toBe(
      "per: must be minute or hour",
    );
  });

  test("tells how long it took from received to processed, of all types and of each", async () => {
    const { body } = await operator.get("/ops/api/figures");
    const [all, paid] = body.last_hour.processing_seconds;
    expect(all).toMatchObject({ type: null, events: 2 });
    expect(paid).toMatchObject({ type: "invoice.paid", events: 2 });
    expect(all.p99).toBeGreaterThan(3_500);
    expect(all.p50).toBeLessThan(all.p95);
  });
});

test("/metrics says the same to Prometheus, in its own form, whatever a reason or a type is called", async () => {
  const { inbox, get } = await anOperator();
  await inbox.deliver(anInvoiceEvent("invoice.paid", { amountPaid: -1 }));
  await inbox.deliver({ ...anInvoiceEvent(), id: freshId("evt"), type: 'odd"type\\of\nmany' });
  const { status, text, headers } = await get("/metrics");
  expect(status).toBe(200);
  expect(headers.get("content-type")).toBe("text/plain; version=0.0.4; charset=utf-8");
  expect(text).toContain("\nstripe_inbox_waiting_events 0\n");
  expect(text).toContain(
    '\nstripe_inbox_needs_review_events{reason="PermanentError:amount_paid_unusable"} 1\n',
  );
  expect(text).toContain('type="odd\\"type\\\\of\\nmany"} 1\n');
  for (const line of text.trimEnd().split("\n")) {
    expect(line).toMatch(
      /^(# (HELP|TYPE) stripe_inbox_\w+ .+|stripe_inbox_\w+(\{.*\})? [\d.e+-]+)$/,
    );
  }
});

test("the last day is told by hour and type, from hours that were counted", async () => {
  const { inbox, get } = await anOperator();
  await inbox.rows(`
    insert into inbox_hours (hour, endpoint, event_type, ignored_reason, received, duplicates, settled,
      p50_seconds, p95_seconds, p99_seconds)
    select date_trunc('hour', now()) - n * interval '1 hour', endpoint, type, reason, 10 * n, n, 9 * n, p, p, p
    from (values (1), (2), (30)) hours (n), (values ('billing', 'invoice.paid', '', 0.5),
      ('billing', 'invoice.paid', 'livemode', null), ('connect', 'charge.updated', 'no_handler', null),
      ('', '', '', 0.7)) counted (endpoint, type, reason, p)`);
  await inbox.rows(`insert into heartbeats (name, started_at, detail)
    values ('hours', now(), jsonb_build_object('until', date_trunc('hour', now())))`);
  const { last_day } = (await get("/ops/api/figures")).body;
  expect(last_day).toMatchObject({
    received: 90,
    duplicates: 9,
    processed: 27,
    ignored: expect.arrayContaining([
      { reason: "livemode", events: 27 },
      { reason: "no_handler", events: 27 },
    ]),
    by_type: [
      { endpoint: "billing", type: "invoice.paid", received: 60, processed: 27, ignored: 27 },
      { endpoint: "connect", type: "charge.updated", received: 30, processed: 0, ignored: 27 },
    ],
  });
  expect(last_day.by_hour).toEqual([
    expect.objectContaining({ received: 60, processed: 18, ignored: 36, p50: 0.7 }),
    expect.objectContaining({ received: 30, processed: 9, ignored: 18, p99: 0.7 }),
  ]);
  expect(Date.parse(last_day.counted_until)).toBeLessThanOrEqual(Date.now());
  const { rates } = (await get("/ops/api/rates?per=hour&type=invoice.paid")).body;
  expect(rates).toEqual([
    expect.objectContaining({ received: 40, processed: 18, ignored: 18, p50: 0.5 }),
    expect.objectContaining({ received: 20, processed: 9, ignored: 9, p50: 0.5 }),
  ]);
});

/** What is processed together with others ends as if it had been processed by itself. */
import { sql } from "drizzle-orm";
import { describe, expect, test } from "vitest";
import type { Tx, Write } from "../../src/db/connect.ts";
import { RowWrite } from "../../src/db/row-write.ts";
import type { Endpoints } from "../../src/endpoints.ts";
import type { Handler } from "../../src/inbox/handler.ts";
import { PermanentError } from "../../src/inbox/retry.ts";
import { billing, book, progress, raising } from "../worker/disturbances.ts";
import { anInvoiceEvent, openTestbed } from "../worker/testbed.ts";
import { manyWait, states, waits } from "../worker/waiting.ts";
import { transactionsOf, waitAround } from "./batched.ts";

/** The tick's own settings would let four lanes share what is due. */
const ONE_LANE = { CONCURRENCY: "1", MAX_ATTEMPTS: "100" };

type PaidHandler = Handler<Parameters<typeof book>[0]>;

/** Books every event but one, to which `spoil` is done. */
function except({ id }: { readonly id: string }, spoil: PaidHandler): Endpoints {
  return billing({
    "invoice.paid": (event, tx) => (event.id === id ? spoil(event, tx) : book(event, tx)),
  });
}

describe("twenty-five fresh events, ten to a claim,", () => {
  test.each([
    ["on", 3],
    ["off", 25],
  ])("are with PROCESS_BATCH=%s booked once each, in %i transactions", async (value, expected) => {
    const inbox = await openTestbed();
    const events = await manyWait(inbox, 25);
    const env = { ...ONE_LANE, CLAIM_BATCH: "10", PROCESS_BATCH: value };
    expect(await inbox.tick(env)).toMatchObject({ processed: 25, failed: 0, taken: 0 });
    expect(await transactionsOf(inbox, events)).toBe(expected);
    expect(await inbox.books()).toMatchObject({ inbox: 25, entries: 25, messages: 25 });
    expect(
      await inbox.rows("select distinct outcome, attempts, fence::int from webhook_inbox"),
    ).toEqual([{ outcome: "processed", attempts: 1, fence: 2 }]);
    expect(await inbox.tick(env)).toMatchObject({ processed: 0 });
  });
});

test("by default fresh events are processed together, on whichever lanes", async () => {
  const inbox = await openTestbed();
  const events = await manyWait(inbox, 20);
  expect(await inbox.tick()).toMatchObject({ processed: 20 });
  expect(await transactionsOf(inbox, events)).toBeLessThan(20);
});

/** A write of one row that is to be merged, and that JSON cannot say. */
const unsayable = (tx: Tx) =>
  new RowWrite(tx, { keyOf: () => "", write: (rows) => sql`${JSON.stringify(rows)}` }, { a: 1n });

const returning =
  (write: (tx: Tx) => Write): PaidHandler =>
  (event, tx) => [...book(event, tx), write(tx)];

const sending =
  (statement: string): PaidHandler =>
  async (event, tx) => {
    await tx.execute(sql.raw(statement));
    return book(event, tx);
  };

const throwing =
  (error: unknown): PaidHandler =>
  () => {
    throw error;
  };

/** What goes wrong with an event; how often its neighbours are then processed apart. */
const SPOILT: readonly (readonly [string, spoil: PaidHandler, error: string, apart: number])[] = [
  ["throws a TypeError", throwing(new TypeError("It fails.")), "TypeError", 1],
  ["rejects later", () => Promise.reject(new RangeError("It fails.")), "RangeError", 1],
  // @ts-expect-error -- The types allow no such answer.
  ["answers with a text", () => "booked", "TypeError", 1],
  // @ts-expect-error -- The types allow no such answer.
  ["answers with a promise", (event, tx) => [Promise.resolve(book(event, tx))], "TypeError", 1],
  ["sends `commit`", sending("commit"), "Error", 1],
  ["sends `rollback; begin`", sending("rollback; begin"), "Error", 1],
  ["returns a write that violates a check", returning(() => raising("23514")), "23514", 4],
  ["returns a write that Postgres cannot read", returning(() => sql`selekt 1`), "42601", 4],
  [
    "returns a write that cannot be sent",
    returning(() => sql`select ${{ a: 1n }}`),
    "TypeError",
    4,
  ],
  ["returns a write of a row that cannot be sent", returning(unsayable), "TypeError", 4],
  ["returns `commit` among its writes", returning(() => sql`commit`), "TypeError", 4],
  ["returns `rollback` among its writes", returning(() => sql`rollback`), "TypeError", 4],
];

describe.each(SPOILT)("an event whose handler %s", (_, spoil, error, apart) => {
  test.each(["on", "off"])(
    "fails alone with PROCESS_BATCH=%s, and nothing of it is booked",
    async (value) => {
      const spoilt = anInvoiceEvent();
      const inbox = await openTestbed({ endpoints: except(spoilt, spoil) });
      const neighbours = await waitAround(inbox, spoilt);
      const env = { ...ONE_LANE, PROCESS_BATCH: value };
      const counts = await inbox.tick(env);
      // Its back-off is random, and may end before the tick does.
      expect(counts.failed).toBeGreaterThan(0);
      expect(counts).toMatchObject({ processed: 4, needs_review: 0, taken: 0, unavailable: 0 });
      expect(await progress(inbox, spoilt.id)).toMatchObject({
        outcome: null,
        parked: false,
        attempts: counts.failed,
        last_error: error,
      });
      expect(await inbox.books()).toMatchObject({ invoices: 4, entries: 4, messages: 4 });
      expect(await transactionsOf(inbox, neighbours)).toBe(value === "on" ? apart : 4);
      // Its lease is over, as its failure is on record.
      expect(
        await inbox.rows(`select 1 as due from webhook_inbox
          where processed_at is null and available_at < now() + interval '20 seconds'`),
      ).toHaveLength(1);
    },
  );
});

test("an event whose handler says never again is parked, at its first attempt", async () => {
  const spoilt = anInvoiceEvent();
  const endpoints = except(spoilt, throwing(new PermanentError("never")));
  const inbox = await openTestbed({ endpoints });
  const neighbours = await waitAround(inbox, spoilt);
  expect(await inbox.tick(ONE_LANE)).toMatchObject({ processed: 4, needs_review: 1, failed: 0 });
  expect(await progress(inbox, spoilt.id)).toMatchObject({
    parked: true,
    attempts: 1,
    last_error: "PermanentError:never",
  });
  expect(await transactionsOf(inbox, neighbours)).toBe(1);
  expect(await inbox.books()).toMatchObject({ invoices: 4, entries: 4, messages: 4 });
});

describe("what there is nothing to do about", () => {
  test("is ignored in the batch's own transaction, with the reason", async () => {
    const inbox = await openTestbed({ env: { STRIPE_LIVEMODE: "false" } });
    const unhandled = [1, 2, 3].map(() => ({ ...anInvoiceEvent(), type: "customer.updated" }));
    const live = { ...anInvoiceEvent(), livemode: true };
    const fixed = { ...anInvoiceEvent(), id: `evt_${"0".repeat(24)}` };
    const events = [...unhandled, live, fixed, anInvoiceEvent(), anInvoiceEvent()];
    for (const event of events) await waits(inbox, { event });
    expect(await inbox.tick(ONE_LANE)).toMatchObject({ processed: 2, ignored: 5 });
    expect(await transactionsOf(inbox, events)).toBe(1);
    expect(
      await inbox.rows(`select outcome, ignored_reason, count(*)::int from webhook_inbox
        group by 1, 2 order by 2`),
    ).toEqual([
      { outcome: "ignored", ignored_reason: "livemode", count: 1 },
      { outcome: "ignored", ignored_reason: "no_handler", count: 3 },
      { outcome: "ignored", ignored_reason: "test_id", count: 1 },
      { outcome: "processed", ignored_reason: null, count: 2 },
    ]);
    expect(await inbox.books()).toMatchObject({ entries: 2, messages: 2 });
  });

  test("at one endpoint is processed at another, in the same batch", async () => {
    const inbox = await openTestbed();
    const events = [anInvoiceEvent(), anInvoiceEvent()];
    for (const [index, event] of events.entries()) {
      const both = ["billing", "connect"];
      for (const endpoint of index === 0 ? both : both.toReversed()) {
        await waits(inbox, { event, endpoint });
      }
    }
    expect(await inbox.tick(ONE_LANE)).toMatchObject({ processed: 2, ignored: 2 });
    expect(await transactionsOf(inbox, events)).toBe(1);
    expect(
      await inbox.rows(`select distinct endpoint, outcome, ignored_reason from webhook_inbox
        order by 1`),
    ).toEqual([
      { endpoint: "billing", outcome: "processed", ignored_reason: null },
      { endpoint: "connect", outcome: "ignored", ignored_reason: "account" },
    ]);
    expect(await inbox.books()).toMatchObject({ inbox: 4, entries: 2, messages: 2 });
  });

  test("because its endpoint is gone is parked alone", async () => {
    const inbox = await openTestbed();
    const neighbours = await manyWait(inbox, 3);
    const gone = await waits(inbox, { endpoint: "gone" });
    expect(await inbox.tick(ONE_LANE)).toMatchObject({ processed: 3, needs_review: 1 });
    expect(await progress(inbox, gone.id)).toMatchObject({
      parked: true,
      attempts: 1,
      last_error: "PermanentError:endpoint_unknown",
    });
    expect(await transactionsOf(inbox, neighbours)).toBe(1);
  });
});

test("a payload of 64 Ki characters is processed with the others, a longer one by itself", async () => {
  const inbox = await openTestbed();
  const [longest, longer] = [await waits(inbox), await waits(inbox)];
  const neighbours = await manyWait(inbox, 3);
  for (const [{ id }, length] of [
    [longest, 65_536],
    [longer, 65_537],
  ] as const) {
    await inbox.rows(
      `update webhook_inbox set payload = payload || jsonb_build_object('pad',
          repeat('x', $2::int - length(payload::text) - length(', "pad": ""')))
        where event_id = $1`,
      [id, length],
    );
  }
  expect(
    await inbox.rows(`select length(payload::text) from webhook_inbox order by 1 desc limit 2`),
  ).toEqual([{ length: 65_537 }, { length: 65_536 }]);
  expect(await inbox.tick(ONE_LANE)).toMatchObject({ processed: 5, failed: 0 });
  expect(await transactionsOf(inbox, [...neighbours, longest])).toBe(1);
  expect(await transactionsOf(inbox, [...neighbours, longest, longer])).toBe(2);
  expect(await inbox.books()).toMatchObject({ entries: 5, messages: 5 });
});

test("a payload that cannot be read costs the batch, and no neighbour", async () => {
  const inbox = await openTestbed();
  const unreadable = anInvoiceEvent();
  const neighbours = await waitAround(inbox, unreadable);
  // As text it would be longer than any text can be.
  await inbox.rows(
    `update webhook_inbox set payload = ('{ "n": [' || repeat('1e131071, ', 8300) || '0] }')::jsonb
      where event_id = $1`,
    [unreadable.id],
  );
  const counts = await inbox.tick({ ...ONE_LANE, MAX_ATTEMPTS: "1" });
  expect(counts).toMatchObject({ processed: 4, needs_review: 1 });
  expect(await transactionsOf(inbox, neighbours)).toBe(4);
  expect(await states(inbox)).toEqual({ processed: 4, parked: 1 });
});

test("what failed before is processed by itself, also among fresh ones", async () => {
  const inbox = await openTestbed();
  const fresh = await manyWait(inbox, 3);
  const retried = await manyWait(inbox, 3, { attempts: 1, lastError: "TypeError" });
  expect(await inbox.tick(ONE_LANE)).toMatchObject({ processed: 6 });
  expect(await transactionsOf(inbox, fresh)).toBe(1);
  expect(await transactionsOf(inbox, retried)).toBe(3);
  expect(await transactionsOf(inbox, [...fresh, ...retried])).toBe(4);
});

test("what one event writes is not parted by what the others write", async () => {
  const endpoints = billing({
    "invoice.paid": ({ id }, tx) => [
      tx.execute(sql`update balance set total = total + 10`),
      tx.execute(sql`insert into statements select ${id}, total from balance`),
    ],
  });
  const inbox = await openTestbed({ endpoints });
  await inbox.rows("create table balance as select 0 as total");
  await inbox.rows("create table statements (event_id text, total int)");
  const events = await manyWait(inbox, 3);
  expect(await inbox.tick(ONE_LANE)).toMatchObject({ processed: 3 });
  expect(await transactionsOf(inbox, events)).toBe(1);
  expect(await inbox.rows("select total from statements order by 1")).toEqual([
    { total: 10 },
    { total: 20 },
    { total: 30 },
  ]);
});

/** Whoever else is at work on the same rows: a batch takes nothing from anybody, and loses nothing. */
import { sql } from "drizzle-orm";
import { describe, expect, test } from "vitest";
import { endpoints as shipped } from "../../src/endpoints.ts";
import type { Handler } from "../../src/inbox/handler.ts";
import { PermanentError } from "../../src/inbox/retry.ts";
import type { StripeEvent } from "../local/events.ts";
import {
  billing,
  book,
  bookAfter,
  progress,
  untilSomeoneWaits,
  whileAnother,
} from "../worker/disturbances.ts";
import { anInvoiceEvent, openTestbed, type Testbed } from "../worker/testbed.ts";
import { manyWait, waits } from "../worker/waiting.ts";
import { openBatcher, rowsOf, transactionsOf, waitAround } from "./batched.ts";
import { openHolder } from "./holders.ts";
import { requeueAll } from "./requeued.ts";

const READER = billing({
  "invoice.paid": async (event, tx) => {
    await tx.execute(sql`select 1`);
    return book(event, tx);
  },
});

const refuses = bookAfter(() => Promise.reject(new PermanentError("never")));

/** What may have become of a claimed row before its batch begins. */
const TAKEN: Record<string, (inbox: Testbed, event: StripeEvent) => Promise<unknown>> = {
  "whose fence has grown": (inbox, { id }) =>
    inbox.rows("update webhook_inbox set fence = fence + 1 where event_id = $1", [id]),
  "that a redelivery settled": async (inbox, event) => {
    expect(await inbox.deliver(event)).toMatchObject({ outcome: "processed" });
  },
  "that another claimed and parked": async (inbox, { id }) => {
    const other = await openHolder(inbox);
    await inbox.rows("update webhook_inbox set available_at = now() where event_id = $1", [id]);
    const parked = await other.work(await other.claimOne(), refuses);
    expect(parked).toMatchObject({ outcome: "needs_review" });
  },
  "that was parked and requeued": async (inbox, { id }) => {
    await inbox.rows(
      "update webhook_inbox set parked_at = now(), last_error = 'Crashed' where event_id = $1",
      [id],
    );
    const { db } = await openHolder(inbox);
    expect(await requeueAll(db, { eventId: id })).toBe(1);
  },
  "that is settled, whatever its fence": (inbox, { id }) =>
    inbox.rows(
      "update webhook_inbox set processed_at = now(), outcome = 'processed' where event_id = $1",
      [id],
    ),
  "that is parked, whatever its fence": (inbox, { id }) =>
    inbox.rows(
      "update webhook_inbox set parked_at = now(), last_error = 'Crashed' where event_id = $1",
      [id],
    ),
};

describe.each(Object.entries(TAKEN))("a claimed event %s", (_, take) => {
  test.each(["together", "apart"] as const)("is left as it is, neighbours go %s", async (how) => {
    const inbox = await openTestbed();
    const event = anInvoiceEvent();
    const neighbours = await waitAround(inbox, event);
    const batcher = await openBatcher(inbox);
    const claims = await batcher.claimAll();
    await take(inbox, event);
    const before = await rowsOf(inbox, [event]);
    const { entries } = await inbox.books();
    expect(await batcher[how](claims)).toEqual({
      processed: 4,
      ignored: 0,
      taken: 1,
      left: [],
    });
    expect(await rowsOf(inbox, [event])).toEqual(before);
    expect(await inbox.books()).toMatchObject({ entries: entries + 4, messages: entries + 4 });
    expect(await transactionsOf(inbox, neighbours)).toBe(how === "together" ? 1 : 4);
  });
});

test("events that are left are claimed as they were before, and nothing else", async () => {
  const inbox = await openTestbed();
  const events = await manyWait(inbox, 3);
  await inbox.rows("update webhook_inbox set fence = 7, duplicates = 2");
  const batcher = await openBatcher(inbox, READER);
  const claims = await batcher.claimAll();
  const before = await rowsOf(inbox, events);
  const { left, ...done } = await batcher.together(claims);
  expect(done).toEqual({ processed: 0, ignored: 0, taken: 0 });
  expect(new Set(left)).toEqual(new Set(claims));
  expect(await rowsOf(inbox, events)).toEqual(before);
  for (const claim of left) {
    expect(await batcher.alone(claim)).toEqual({ outcome: "processed" });
  }
  expect(await inbox.books()).toMatchObject({ entries: 3, messages: 3 });
});

test("after a batch that failed, every event is claimed as it was before", async () => {
  const inbox = await openTestbed();
  const events = await manyWait(inbox, 3);
  const endpoints = billing({
    "invoice.paid": (event, tx) => [
      ...book(event, tx),
      ...(event.id === events[1]?.id ? [sql`select 1 / 0`] : []),
    ],
  });
  const batcher = await openBatcher(inbox, endpoints);
  const claims = await batcher.claimAll();
  const before = await rowsOf(inbox, events);
  expect(await batcher.together(claims)).toEqual({
    processed: 0,
    ignored: 0,
    taken: 0,
    left: claims,
  });
  expect(await rowsOf(inbox, events)).toEqual(before);
  expect(await inbox.books()).toMatchObject({ invoices: 0, entries: 0, messages: 0 });
});

describe("a sync delivery that comes while a batch holds its row", () => {
  test.each(["is processed in the batch", "is left by it"])(
    "of an event that %s is answered with 200, and nothing is booked twice",
    async (which) => {
      const held = Promise.withResolvers<void>();
      const delivered = Promise.withResolvers<void>();
      const inbox = await openTestbed();
      const event = await waits(inbox);
      let calls = 0;
      const endpoints = bookAfter(async (tx, _, { id }) => {
        if (id !== event.id || ++calls > 1) return;
        held.resolve();
        await delivered.promise;
        if (which === "is left by it") await tx.execute(sql`select 1`);
      });
      const neighbours = await manyWait(inbox, 3);
      const batcher = await openBatcher(inbox, endpoints);
      const settled = batcher.settleAll();
      await held.promise;
      const answering = inbox.deliver(event);
      await untilSomeoneWaits(inbox);
      delivered.resolve();
      const { processed, left } = await settled;
      expect(processed + left.length).toBe(1 + neighbours.length);
      // On a slow machine the handler may have taken too long for a batch: then it was left, too.
      const isLeft = left.some(({ eventId }) => eventId === event.id);
      const { status, outcome } = await answering;
      expect(status).toBe(200);
      // What is left is processed by the delivery, or else before it.
      expect(isLeft ? ["processed", "duplicate"] : ["duplicate"]).toContain(outcome);
      const attempts = outcome === "processed" ? 2 : 1;
      expect(await progress(inbox, event.id)).toMatchObject({ outcome: "processed", attempts });
      expect(await inbox.books()).toMatchObject({ inbox: 4, entries: 4, messages: 4 });
    },
  );
});

test("a slow handler keeps a batch for two seconds, and is then asked again by itself", async () => {
  const slow = anInvoiceEvent();
  let calls = 0;
  const endpoints = bookAfter(async (_, __, event) => {
    if (event.id !== slow.id) return;
    calls += 1;
    if (calls === 1) await new Promise((resolve) => setTimeout(resolve, 8_000).unref());
  });
  const inbox = await openTestbed({ endpoints });
  await waitAround(inbox, slow);
  const startedAt = Date.now();
  // For those behind it no time was left; it is nobody's failure.
  expect(await inbox.tick({ CONCURRENCY: "1" })).toMatchObject({ processed: 5, failed: 0 });
  expect(Date.now() - startedAt).toBeLessThan(7_000);
  expect(calls).toBe(2);
  expect(await inbox.books()).toMatchObject({ inbox: 5, entries: 5, messages: 5 });
});

test("whoever holds an invoice keeps a batch for a second, and then one event alone", async () => {
  const inbox = await openTestbed();
  await inbox.rows("insert into invoices (id, status) values ('in_held', 'open')");
  const event = anInvoiceEvent("invoice.paid", { id: "in_held" });
  const neighbours = await waitAround(inbox, event);
  const batcher = await openBatcher(inbox);
  const claims = await batcher.claimAll();
  await whileAnother(inbox, async (other) => {
    await other.query("select from invoices where id = 'in_held' for update");
    const startedAt = Date.now();
    const { left } = await batcher.together(claims);
    expect(Date.now() - startedAt).toBeGreaterThan(950);
    expect(Date.now() - startedAt).toBeLessThan(5_000);
    expect(left).toEqual(claims);
    for (const claim of left.filter(({ eventId }) => eventId !== event.id)) {
      expect(await batcher.alone(claim)).toEqual({ outcome: "processed" });
    }
  });
  expect(await transactionsOf(inbox, neighbours)).toBe(4);
  const [claim] = claims.filter(({ eventId }) => eventId === event.id);
  if (!claim) throw new Error("Bug! It was claimed.");
  expect(await batcher.alone(claim)).toEqual({ outcome: "processed" });
  expect(await inbox.books()).toMatchObject({ inbox: 5, entries: 5, messages: 5 });
});

/** Writes that cannot be merged. */
const note: Handler = ({ data: { object } }, tx) => [
  tx.execute(sql`insert into invoices (id, status) values (${"id" in object ? object.id : ""}, 'open')
    on conflict (id) do update set updated_at = now()`),
];
const PLAIN = billing({ "invoice.paid": note, "invoice.payment_succeeded": note });

test.each([
  ["writes that are merged", shipped, 1],
  ["writes that are not", PLAIN, 0],
] as const)(
  "two batches at once about the same invoices, in opposite order, never wait in a ring: %s",
  async (_, table, entries) => {
    const ROUNDS = 25;
    const INVOICES = 12;
    const inbox = await openTestbed();
    const [one, other] = [await openBatcher(inbox, table), await openBatcher(inbox, table)];
    for (let round = 0; round < ROUNDS; round++) {
      const ids = Array.from({ length: INVOICES }, (__, n) => `in_${round}_${n}`);
      await manyOf(inbox, "invoice.paid", ids);
      const forwards = await one.claimAll();
      await manyOf(inbox, "invoice.payment_succeeded", ids.toReversed());
      const backwards = await other.claimAll();
      expect([forwards.length, backwards.length]).toEqual([INVOICES, INVOICES]);
      const done = { processed: INVOICES, ignored: 0, taken: 0, left: [] };
      const both = await Promise.all([one.together(forwards), other.together(backwards)]);
      expect(both).toEqual([done, done]);
    }
    const all = ROUNDS * INVOICES;
    expect(await inbox.books()).toEqual({
      inbox: 2 * all,
      invoices: all,
      entries: entries * all,
      messages: entries * all,
      discrepancies: 0,
    });
  },
);

test("a tick counts what was taken between its claim and its batch", async () => {
  const inbox = await openTestbed();
  const event = anInvoiceEvent();
  await waitAround(inbox, event);
  // Another claims it as soon as the tick has.
  await inbox.rows(`create function overtake() returns trigger language plpgsql as $$ begin
      update webhook_inbox set fence = fence + 1 where event_id = new.event_id; return null;
    end $$`);
  await inbox.rows(`create trigger overtake after update of attempts on webhook_inbox for each row
    when (new.event_id = '${event.id}') execute function overtake()`);
  expect(await inbox.tick({ CONCURRENCY: "1" })).toMatchObject({ processed: 4, taken: 1 });
  expect(await progress(inbox, event.id)).toMatchObject({ outcome: null, attempts: 1 });
  expect(await inbox.books()).toMatchObject({ entries: 4, messages: 4 });
});

async function manyOf(
  inbox: Testbed,
  type: "invoice.paid" | "invoice.payment_succeeded",
  ids: readonly string[],
): Promise<void> {
  const events = ids.map((id) => anInvoiceEvent(type, { id }));
  await inbox.rows(
    `insert into webhook_inbox (endpoint, event_id, event_type, object_id, payload, available_at)
      select 'billing', event ->> 'id', event ->> 'type', event #>> '{data,object,id}', event,
        now() - interval '1 hour' + n * interval '1 second'
      from jsonb_array_elements($1::jsonb) with ordinality as events (event, n)`,
    [JSON.stringify(events)],
  );
}

test("an event that is taken between its reading and its mark is not booked", async () => {
  const inbox = await openTestbed();
  const event = anInvoiceEvent();
  await waitAround(inbox, event);
  const taking = billing({
    "invoice.paid": async (told, tx) => {
      if (told.id === event.id) {
        await inbox.rows("update webhook_inbox set fence = fence + 1 where event_id = $1", [
          told.id,
        ]);
      }
      return book(told, tx);
    },
  });
  const { claimAll, apart } = await openBatcher(inbox, taking);
  expect(await apart(await claimAll())).toEqual({ processed: 4, ignored: 0, taken: 1, left: [] });
  expect(await progress(inbox, event.id)).toMatchObject({ outcome: null, parked: false });
  expect(await inbox.books()).toMatchObject({ entries: 4, messages: 4 });
});

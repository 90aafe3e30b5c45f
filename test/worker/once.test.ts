/** One event has one effect, however many deliveries speak of it, and however they overlap. */
import { sql } from "drizzle-orm";
import { describe, expect, test } from "vitest";
import { billing, book, bookAfter, ONE_BOOKING, progress, tally } from "./disturbances.ts";
import { anInvoiceEvent, openTestbed, PIPELINE_SETTINGS, SECRET } from "./testbed.ts";

describe.each(PIPELINE_SETTINGS)("with PIPELINE=%s", (PIPELINE) => {
  test("of eight deliveries at once one is processed, and seven are counted as duplicates", async () => {
    const inbox = await openTestbed({ env: { PIPELINE } });
    const event = anInvoiceEvent();
    const answers = await Promise.all(Array.from({ length: 8 }, () => inbox.deliver(event)));

    expect(tally(answers)).toEqual({ processed: 1, duplicate: 7 });
    expect(await inbox.books()).toEqual(ONE_BOOKING);
    expect(await progress(inbox, event.id)).toMatchObject({ attempts: 1, duplicates: 7 });
  });

  test("twenty deliveries at once wait for a handler of half a second, and all get a 200", async () => {
    const endpoints = bookAfter((tx) => tx.execute(sql`select pg_sleep(0.5)`));
    const inbox = await openTestbed({ endpoints, env: { PIPELINE } });
    const event = anInvoiceEvent();
    const answers = await Promise.all(Array.from({ length: 20 }, () => inbox.deliver(event)));

    expect(tally(answers)).toEqual({ processed: 1, duplicate: 19 });
    expect(await inbox.books()).toEqual(ONE_BOOKING);
  });
});

test("when the first of twenty rolls back, exactly one of those behind it does the work", async () => {
  const endpoints = bookAfter(async (tx, call) => {
    await tx.execute(sql`select pg_sleep(0.5)`);
    if (call === 1) throw new Error("The first one fails.");
  });
  const inbox = await openTestbed({ endpoints });
  const event = anInvoiceEvent();
  const answers = await Promise.all(Array.from({ length: 20 }, () => inbox.deliver(event)));

  // The first is told of its own failure, or of the success that overtook the record of it.
  const { processed, duplicate = 0, failed = 0, ...others } = tally(answers);
  expect(others).toEqual({});
  expect(processed).toBe(1);
  expect(failed).toBeLessThanOrEqual(1);
  expect(duplicate + failed).toBe(19);
  expect(await inbox.books()).toEqual(ONE_BOOKING);
  expect(await inbox.deliver(event)).toMatchObject({ status: 200, outcome: "duplicate" });
  expect(await inbox.books()).toEqual(ONE_BOOKING);
});

test("one payment told by three events is booked once, one after the other or all at once", async () => {
  const inbox = await openTestbed();
  for (const event of threeEventsOfOnePayment("in_in_turn")) {
    expect(await inbox.deliver(event)).toMatchObject({ status: 200, outcome: "processed" });
  }
  expect(await inbox.books()).toEqual({ ...ONE_BOOKING, inbox: 3 });

  const atOnce = await Promise.all(
    threeEventsOfOnePayment("in_at_once").map((event) => inbox.deliver(event)),
  );
  expect(tally(atOnce)).toEqual({ processed: 3 });
  expect(await inbox.books()).toEqual({
    inbox: 6,
    invoices: 2,
    entries: 2,
    messages: 2,
    discrepancies: 0,
  });
});

function threeEventsOfOnePayment(id: string): ReturnType<typeof anInvoiceEvent>[] {
  const types = ["invoice.paid", "invoice.paid", "invoice.payment_succeeded"] as const;
  return types.map((type) => anInvoiceEvent(type, { id }));
}

test("one event at two endpoints at once is received at both, and booked once", async () => {
  const { billing: one } = billing({ "invoice.paid": book });
  if (!one) throw new Error("Bug! There is an endpoint.");
  const inbox = await openTestbed({ endpoints: { one, two: one } });
  const event = anInvoiceEvent();
  const answers = await Promise.all(
    ["one", "two", "one", "two"].map((endpoint) =>
      inbox.deliver(event, { endpoint, secret: SECRET }),
    ),
  );

  expect(tally(answers)).toEqual({ processed: 2, duplicate: 2 });
  expect(await inbox.books()).toEqual({ ...ONE_BOOKING, inbox: 2 });
});

test("the mark, the entry and the message are of one transaction: all there once it is answered", async () => {
  const inbox = await openTestbed();
  await inbox.deliver(anInvoiceEvent());

  expect(
    await inbox.rows(`select webhook_inbox.xmin = ledger_entries.xmin as entry_with_mark,
      ledger_entries.xmin = outbox.xmin as message_with_entry, published_at, outbox.attempts
      from webhook_inbox, ledger_entries, outbox`),
  ).toEqual([{ entry_with_mark: true, message_with_entry: true, published_at: null, attempts: 0 }]);
});

test("three deliveries in a row and then twenty at once are all answered within five seconds", async () => {
  const inbox = await openTestbed();
  const started = Date.now();
  for (const event of Array.from({ length: 3 }, () => anInvoiceEvent())) {
    expect(await inbox.deliver(event)).toMatchObject({ status: 200, outcome: "processed" });
  }
  const answers = await Promise.all(
    Array.from({ length: 20 }, () => inbox.deliver(anInvoiceEvent())),
  );
  expect(tally(answers)).toEqual({ processed: 20 });
  expect(Date.now() - started).toBeLessThan(5_000);
});

/** Events of one invoice that arrive at once: one consistent end, no failure, no deadlock. */
import { expect, test } from "vitest";
import { invoiceHandlers } from "../../src/billing/handlers.ts";
import type { Endpoint } from "../../src/endpoints.ts";
import type { StripeEvent } from "../local/events.ts";
import { booksOf } from "./invoices.ts";
import { anInvoiceEvent, freshId, openTestbed, SECRET, type Testbed } from "./testbed.ts";

/** So many invoices at once: with seven events each, far below what the database can serve. */
const AT_ONCE = 5;

/** Runs `race` for so many invoices of their own, some at the same time. */
async function raceFor(count: number, race: (id: string, index: number) => Promise<void>) {
  for (let index = 0; index < count; index += AT_ONCE) {
    const batch = Array.from({ length: Math.min(AT_ONCE, count - index) }, (_, i) => index + i);
    await Promise.all(batch.map((each) => race(freshId("in"), each)));
  }
}

/** Every one is answered as processed, at its first attempt. */
async function deliverTogether(inbox: Testbed, events: readonly StripeEvent[]): Promise<void> {
  const answers = await Promise.all(events.map((event) => inbox.deliver(event)));
  expect(answers).toMatchObject(events.map(() => ({ status: 200, outcome: "processed" })));
}

/** A deadlock would be retried within the delivery, and show nowhere else. */
async function expectNoDeadlock(inbox: Testbed): Promise<void> {
  expect(
    await inbox.rows("select deadlocks from pg_stat_database where datname = current_database()"),
  ).toEqual([{ deadlocks: "0" }]);
  expect(
    await inbox.rows("select event_id from webhook_inbox where attempts <> 1 or outcome is null"),
  ).toEqual([]);
}

test("finalized and paid of 50 unknown invoices, each pair at once: 50 paid invoices", async () => {
  const inbox = await openTestbed();
  await raceFor(50, async (id) => {
    await deliverTogether(inbox, [
      anInvoiceEvent("invoice.finalized", { id, status: "open" }),
      anInvoiceEvent("invoice.paid", { id }),
    ]);
    expect(await booksOf(inbox, id)).toMatchObject({
      invoice: { status: "paid", amount_paid: 4200, paid: true },
      entries: [{ amount: 4200 }],
    });
  });
  expect(await inbox.books()).toEqual({
    inbox: 100,
    invoices: 50,
    entries: 50,
    messages: 50,
    discrepancies: 0,
  });
  await expectNoDeadlock(inbox);
});

test("paid and voided at once, 50 times: one wins, and the other one's contradiction shows", async () => {
  const inbox = await openTestbed();
  await raceFor(50, async (id, index) => {
    const known = index % 2 === 0;
    if (known) await inbox.deliver(anInvoiceEvent("invoice.finalized", { id, status: "open" }));
    const paid = anInvoiceEvent("invoice.paid", { id });
    const voided = anInvoiceEvent("invoice.voided", { id, status: "void" });
    await deliverTogether(inbox, index % 4 < 2 ? [paid, voided] : [voided, paid]);

    const books = await booksOf(inbox, id);
    const asPaid = {
      invoice: { status: "paid", amount_paid: 4200, paid: true },
      entries: [{ amount: 4200, event_id: paid.id }],
      messages: [{ amount: 4200, event_id: paid.id }],
      discrepancies: [{ kind: "void_after_paid", event_id: voided.id }],
    };
    const asVoid = {
      invoice: { status: "void", amount_paid: 0, paid: false },
      entries: [],
      messages: [],
      discrepancies: [{ kind: "paid_after_void", event_id: paid.id }],
    };
    expect(books).toMatchObject(books.invoice?.status === "paid" ? asPaid : asVoid);
  });
  await expectNoDeadlock(inbox);
});

test("every kind of event of one invoice at once, 20 times: one entry and no deadlock", async () => {
  const inbox = await openTestbed();
  await raceFor(20, async (id, index) => {
    const events = [
      anInvoiceEvent("invoice.created", { id, status: "draft" }),
      anInvoiceEvent("invoice.finalized", { id, status: "open" }),
      anInvoiceEvent("invoice.payment_failed", { id, status: "open" }),
      anInvoiceEvent("invoice.updated", { id }),
      anInvoiceEvent("invoice.paid", { id }),
      anInvoiceEvent("invoice.payment_succeeded", { id }),
      anInvoiceEvent("invoice.payment_succeeded", { id, status: "open" }),
    ];
    await deliverTogether(inbox, index % 2 === 0 ? events : events.toReversed());
    expect(await booksOf(inbox, id)).toMatchObject({
      invoice: { status: "paid", amount_paid: 4200 },
      entries: [{ amount: 4200 }],
      messages: [{ amount: 4200 }],
      discrepancies: [],
    });
  });
  await expectNoDeadlock(inbox);
});

test("one event at two endpoints at once, 20 times: two records, one entry each", async () => {
  const billing: Endpoint = {
    secrets: "STRIPE_WEBHOOK_SECRET",
    accounts: "own",
    handlers: invoiceHandlers,
  };
  const inbox = await openTestbed({ endpoints: { billing, archive: billing } });
  await raceFor(20, async (id) => {
    const event = anInvoiceEvent("invoice.paid", { id });
    const answers = await Promise.all(
      ["billing", "archive"].map((endpoint) => inbox.deliver(event, { endpoint, secret: SECRET })),
    );
    expect(answers).toMatchObject([{ outcome: "processed" }, { outcome: "processed" }]);
  });
  expect(await inbox.books()).toMatchObject({ inbox: 40, invoices: 20, entries: 20, messages: 20 });
  await expectNoDeadlock(inbox);
});

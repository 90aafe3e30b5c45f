/** One payment of one invoice is booked once, with its message, however many events tell of it. */
import { expect, test } from "vitest";
import { invoiceHandlers } from "../../src/billing/handlers.ts";
import type { Endpoint } from "../../src/endpoints.ts";
import { booksOf, withFields } from "./invoices.ts";
import { anInvoiceEvent, freshId, openTestbed, SECRET } from "./testbed.ts";

/** A second endpoint of the same account that books invoices too. */
const billing: Endpoint = {
  secrets: "STRIPE_WEBHOOK_SECRET",
  accounts: "own",
  handlers: invoiceHandlers,
};
const twoEndpoints = { billing, archive: billing };

test.each([
  ["invoice.paid", "invoice.paid", "invoice.payment_succeeded"],
  ["invoice.payment_succeeded", "invoice.paid", "invoice.payment_succeeded"],
] as const)("%s, then further events of one payment: the first one books", async (...types) => {
  const inbox = await openTestbed();
  const id = freshId("in");
  const events = types.map((type) => anInvoiceEvent(type, { id }));
  for (const event of events) {
    expect(await inbox.deliver(event)).toMatchObject({ status: 200, outcome: "processed" });
  }
  expect(await inbox.books()).toEqual({
    inbox: 3,
    invoices: 1,
    entries: 1,
    messages: 1,
    discrepancies: 0,
  });
  const first = { event_id: events[0]?.id };
  expect(await booksOf(inbox, id)).toMatchObject({ entries: [first], messages: [first] });
});

test("one event at two endpoints, and another of the same payment: one entry", async () => {
  const inbox = await openTestbed({ endpoints: twoEndpoints });
  const id = freshId("in");
  const event = anInvoiceEvent("invoice.paid", { id });
  for (const endpoint of ["billing", "archive"]) {
    expect(await inbox.deliver(event, { endpoint, secret: SECRET })).toMatchObject({
      outcome: "processed",
    });
  }
  const other = anInvoiceEvent("invoice.payment_succeeded", { id });
  expect(await inbox.deliver(other, { endpoint: "archive", secret: SECRET })).toMatchObject({
    outcome: "processed",
  });
  expect(await inbox.books()).toEqual({
    inbox: 3,
    invoices: 1,
    entries: 1,
    messages: 1,
    discrepancies: 0,
  });
});

test.each(["invoice.updated", "invoice.finalized"] as const)(
  "an invoice that %s made paid is still booked by its payment event",
  async (type) => {
    const inbox = await openTestbed();
    const id = freshId("in");
    await inbox.deliver(anInvoiceEvent(type, { id }));
    expect(await booksOf(inbox, id)).toMatchObject({
      invoice: { status: "paid", amount_paid: 0 },
      entries: [],
      messages: [],
    });
    const payment = anInvoiceEvent("invoice.paid", { id });
    await inbox.deliver(payment);
    expect(await booksOf(inbox, id)).toMatchObject({
      invoice: { status: "paid", amount_paid: 4200 },
      entries: [{ amount: 4200, event_id: payment.id }],
      messages: [{ amount: 4200, event_id: payment.id }],
    });
  },
);

test("the entry and its message say what was booked, for whom and by which event", async () => {
  const inbox = await openTestbed();
  const id = freshId("in");
  const event = anInvoiceEvent("invoice.paid", { id, currency: "usd", amountPaid: 1999 });
  await inbox.deliver(event);
  expect(await inbox.rows("select * from ledger_entries")).toEqual([
    {
      id: "1",
      invoice_id: id,
      kind: "payment",
      amount: "1999",
      currency: "usd",
      event_id: event.id,
    },
  ]);
  const [message] = await inbox.rows("select * from outbox");
  expect(message).toMatchObject({
    aggregate_type: "Invoice",
    aggregate_id: id,
    event_type: "InvoicePaymentBooked",
    published_at: null,
    attempts: 0,
    fence: "0",
    last_error: null,
    parked_at: null,
  });
  // Exactly these keys: `amount` a number, not a text.
  expect(message?.["payload"]).toEqual({
    invoice_id: id,
    amount: 1999,
    currency: "usd",
    customer_id: "cus_test",
    event_id: event.id,
  });
});

test("a message names the customer that an earlier event made known", async () => {
  const inbox = await openTestbed();
  const id = freshId("in");
  await inbox.deliver(anInvoiceEvent("invoice.created", { id, status: "draft" }));
  await inbox.deliver(withFields(anInvoiceEvent("invoice.paid", { id }), { customer: undefined }));
  expect((await booksOf(inbox, id)).messages).toMatchObject([{ customer_id: "cus_test" }]);
});

test("a message's unknown currency and customer are null, and never missing", async () => {
  const inbox = await openTestbed();
  const unknown = { currency: undefined, customer: undefined };
  const event = withFields(anInvoiceEvent("invoice.paid"), unknown);
  await inbox.deliver(event);
  expect(await inbox.rows("select payload from outbox")).toEqual([
    {
      payload: {
        invoice_id: event.data?.object["id"],
        amount: 4200,
        currency: null,
        customer_id: null,
        event_id: event.id,
      },
    },
  ]);
});

test.each([
  ["invoice.created", "draft"],
  ["invoice.finalized", "open"],
  ["invoice.updated", "paid"],
  ["invoice.payment_failed", "open"],
  ["invoice.payment_succeeded", "open"],
  ["invoice.marked_uncollectible", "uncollectible"],
  ["invoice.voided", "void"],
  ["invoice.deleted", "draft"],
] as const)("%s (%s) books nothing and sends nothing", async (type, status) => {
  const inbox = await openTestbed();
  const answer = await inbox.deliver(anInvoiceEvent(type, { status, amountPaid: 4200 }));
  expect(answer).toMatchObject({ status: 200, outcome: "processed" });
  expect(await inbox.books()).toMatchObject({ inbox: 1, entries: 0, messages: 0 });
});

/** Events that contradict each other change nothing that is booked; a person is asked, once. */
import { beforeAll, expect, test } from "vitest";
import type { StripeEvent } from "../local/events.ts";
import { booksOf, rowOf, withFields } from "./invoices.ts";
import { anInvoiceEvent, freshId, openTestbed, type Testbed } from "./testbed.ts";

let inbox: Testbed;

beforeAll(async () => {
  inbox = await openTestbed();
});

/** Delivered one after the other; each must be processed. */
async function deliver(...events: StripeEvent[]): Promise<void> {
  for (const event of events) {
    expect(await inbox.deliver(event)).toMatchObject({ status: 200, outcome: "processed" });
  }
}

async function detailsOf(id: string): Promise<Record<string, unknown>[]> {
  return inbox.rows(
    `select kind, event_id, detail, found_at is not null as found, resolved_at, resolution
      from discrepancies where object_id = $1 order by id`,
    [id],
  );
}

test.each([
  ["invoice.paid", 4200],
  ["invoice.payment_succeeded", 4200],
  ["invoice.paid", 0],
] as const)(
  "%s of %i for a void invoice: nothing is booked, a person is asked",
  async (type, amountPaid) => {
    const id = freshId("in");
    await deliver(anInvoiceEvent("invoice.voided", { id, status: "void" }));
    const row = await rowOf(inbox, id);
    const payments = ["a", "b"].map(() => anInvoiceEvent(type, { id, amountPaid }));
    await deliver(...payments);
    expect(await rowOf(inbox, id)).toEqual(row);
    expect(await booksOf(inbox, id)).toEqual({
      invoice: {
        status: "void",
        customer_id: "cus_test",
        currency: "eur",
        amount_paid: 0,
        paid: false,
      },
      entries: [],
      messages: [],
      discrepancies: [{ kind: "paid_after_void", event_id: payments[0]?.id }],
    });
  },
);

test.each([4200, 0])(
  "a void for an invoice that was paid with %i: it stays paid",
  async (amountPaid) => {
    const id = freshId("in");
    await deliver(anInvoiceEvent("invoice.paid", { id, amountPaid }));
    const [row, before] = [await rowOf(inbox, id), await booksOf(inbox, id)];
    const voids = ["a", "b"].map(() => anInvoiceEvent("invoice.voided", { id, status: "void" }));
    await deliver(...voids);
    expect(await rowOf(inbox, id)).toEqual(row);
    expect(await booksOf(inbox, id)).toEqual({
      ...before,
      discrepancies: [{ kind: "void_after_paid", event_id: voids[0]?.id }],
    });
  },
);

test("no other event asks for a person: not what it says, nor the amount in it", async () => {
  const [paid, voided] = [freshId("in"), freshId("in")];
  await deliver(
    anInvoiceEvent("invoice.paid", { id: paid }),
    anInvoiceEvent("invoice.voided", { id: voided, status: "void" }),
  );
  for (const type of [
    "invoice.created",
    "invoice.finalized",
    "invoice.updated",
    "invoice.payment_failed",
    "invoice.marked_uncollectible",
    "invoice.deleted",
  ] as const) {
    await deliver(
      anInvoiceEvent(type, { id: paid, status: "void" }),
      anInvoiceEvent(type, { id: paid, amountPaid: 1, currency: "usd" }),
      anInvoiceEvent(type, { id: voided, status: "paid" }),
    );
  }
  expect(await booksOf(inbox, paid)).toMatchObject({
    invoice: { status: "paid", amount_paid: 4200 },
    discrepancies: [],
  });
  expect(await booksOf(inbox, voided)).toMatchObject({
    invoice: { status: "void" },
    entries: [],
    discrepancies: [],
  });
});

test("what a person is shown: both sides of the contradiction, and nobody's name", async () => {
  const customer = { id: "cus_1", name: "Saoirse Example", email: "saoirse@example.test" };
  const id = freshId("in");
  const first = anInvoiceEvent("invoice.paid", { id, currency: "eur" });
  const second = anInvoiceEvent("invoice.paid", { id, amountPaid: 4300, currency: "usd" });
  const voiding = anInvoiceEvent("invoice.voided", { id, status: "void" });
  await deliver(withFields(first, { customer }), withFields(second, { customer }));
  await deliver(withFields(voiding, { customer, customer_email: customer.email }));

  const details = await detailsOf(id);
  expect(details).toEqual([
    {
      kind: "payment_mismatch",
      event_id: second.id,
      detail: {
        booked_amount: 4200,
        booked_currency: "eur",
        booked_by: first.id,
        amount: 4300,
        currency: "usd",
      },
      found: true,
      resolved_at: null,
      resolution: null,
    },
    {
      kind: "void_after_paid",
      event_id: voiding.id,
      detail: { status: "paid", event_says: "void", amount: null, currency: "eur" },
      found: true,
      resolved_at: null,
      resolution: null,
    },
  ]);
  expect(JSON.stringify(details)).not.toMatch(/saoirse|cus_1/i);
});

test("what a person is shown of money for a void invoice: how much, in which currency", async () => {
  const id = freshId("in");
  const payment = anInvoiceEvent("invoice.paid", { id, amountPaid: 1234, currency: "gbp" });
  await deliver(anInvoiceEvent("invoice.voided", { id, status: "void" }), payment);
  expect(await detailsOf(id)).toMatchObject([
    {
      kind: "paid_after_void",
      event_id: payment.id,
      detail: { status: "void", event_says: "paid", amount: 1234, currency: "gbp" },
    },
  ]);
});

test("what a person has resolved stays so until something else is found", async () => {
  const id = freshId("in");
  const pay = (amountPaid: number) => deliver(anInvoiceEvent("invoice.paid", { id, amountPaid }));
  const resolved = () =>
    inbox.rows(
      `select resolution, detail ->> 'amount' as amount from discrepancies where object_id = $1`,
      [id],
    );
  await pay(4200);
  await pay(4300);
  await inbox.rows(
    "update discrepancies set resolved_at = now(), resolution = 'refunded' where object_id = $1",
    [id],
  );
  await pay(4300);
  expect(await resolved()).toEqual([{ resolution: "refunded", amount: "4300" }]);
  await pay(9900);
  expect(await resolved()).toEqual([{ resolution: null, amount: "9900" }]);
});

/** Money is booked in whole minor units exactly as sent, or not at all. */
import { beforeAll, expect, test } from "vitest";
import type { StripeEvent } from "../local/events.ts";
import { booksOf, recordOf, withFields, withRawField } from "./invoices.ts";
import { anInvoiceEvent, freshId, openTestbed, type Testbed } from "./testbed.ts";

let inbox: Testbed;

beforeAll(async () => {
  inbox = await openTestbed();
});

const LARGEST = 9_007_199_254_740_991;

const invoiceIdOf = (event: StripeEvent): string => String(event.data?.object["id"]);

async function expectNeedsReview(event: StripeEvent, reason: string) {
  expect(await recordOf(inbox, event.id)).toEqual({
    outcome: null,
    parked: true,
    last_error: `PermanentError:${reason}`,
  });
  expect(await booksOf(inbox, invoiceIdOf(event))).toEqual({
    invoice: null,
    entries: [],
    messages: [],
    discrepancies: [],
  });
}

test.each([
  { currency: "jpy", amountPaid: 500 },
  { currency: "kwd", amountPaid: 1500 },
  { currency: "usd", amountPaid: 500 },
  { currency: "eur", amountPaid: 1 },
  { currency: "idr", amountPaid: 1e15 },
  { currency: "vnd", amountPaid: LARGEST },
])("$amountPaid $currency is stored as this very number", async ({ currency, amountPaid }) => {
  const id = freshId("in");
  expect(
    await inbox.deliver(anInvoiceEvent("invoice.paid", { id, currency, amountPaid })),
  ).toMatchObject({ status: 200, outcome: "processed" });
  // As text: not even the test may round.
  expect(
    await inbox.rows(
      `select invoices.amount_paid::text, amount::text, payload->>'amount' as message,
        entry.currency
      from invoices join ledger_entries entry on invoice_id = invoices.id
        join outbox on aggregate_id = invoice_id
      where invoices.id = $1`,
      [id],
    ),
  ).toEqual([
    {
      amount_paid: String(amountPaid),
      amount: String(amountPaid),
      message: String(amountPaid),
      currency,
    },
  ]);
});

test.each(["invoice.paid", "invoice.payment_succeeded"] as const)(
  "an amount in %s that is no whole number from 0 to 2^53-1 waits for a person, unbooked",
  async (type) => {
    const odd = [
      undefined,
      null,
      true,
      "500",
      "",
      "0",
      1.5,
      0.1,
      -1,
      -4200,
      [500],
      { amount: 500 },
      LARGEST + 1,
      1e21,
    ];
    for (const value of odd) {
      const event = withFields(anInvoiceEvent(type), { amount_paid: value });
      const answer = await inbox.deliver(event);
      expect(answer, JSON.stringify(value)).toMatchObject({ status: 200, outcome: "needs_review" });
      await expectNeedsReview(event, "amount_paid_unusable");
    }
  },
);

test.each(["9007199254740993", "9007199254740992.0", "1e400", "-1e400", "1e16", "5e-1"])(
  "the amount %s, as it stands in the JSON, is never rounded into an entry",
  async (json) => {
    const event = anInvoiceEvent();
    const body = withRawField(event, "amount_paid", json);
    expect(body).toContain(`"amount_paid":${json}`);
    expect(await inbox.deliver(body)).toMatchObject({ status: 200, outcome: "needs_review" });
    expect(await inbox.deliver(body)).toMatchObject({ status: 200, outcome: "needs_review" });
    await expectNeedsReview(event, "amount_paid_unusable");
  },
);

test.each([
  ["invoice.updated", "paid"],
  ["invoice.finalized", "open"],
  ["invoice.voided", "void"],
  ["invoice.payment_failed", "open"],
] as const)("%s does not read the amount: nonsense there does no harm", async (type, status) => {
  const id = freshId("in");
  const event = withFields(anInvoiceEvent(type, { id, status }), { amount_paid: "-1.5" });
  expect(await inbox.deliver(event)).toMatchObject({ status: 200, outcome: "processed" });
  expect(await booksOf(inbox, id)).toMatchObject({
    invoice: { status, amount_paid: 0 },
    entries: [],
  });
});

test.each(["0", "-0", "0.0", "0e5"])(
  "an invoice of %s is paid: no entry, no message",
  async (json) => {
    const id = freshId("in");
    for (const type of ["invoice.paid", "invoice.payment_succeeded"] as const) {
      const body = withRawField(anInvoiceEvent(type, { id, total: 0 }), "amount_paid", json);
      expect(await inbox.deliver(body)).toMatchObject({ status: 200, outcome: "processed" });
    }
    expect(await booksOf(inbox, id)).toEqual({
      invoice: {
        status: "paid",
        customer_id: "cus_test",
        currency: "eur",
        amount_paid: 0,
        paid: true,
      },
      entries: [],
      messages: [],
      discrepancies: [],
    });
  },
);

test("money that comes after a payment of nothing is booked", async () => {
  const id = freshId("in");
  await inbox.deliver(anInvoiceEvent("invoice.paid", { id, amountPaid: 0 }));
  const money = anInvoiceEvent("invoice.payment_succeeded", { id, amountPaid: 900 });
  expect(await inbox.deliver(money)).toMatchObject({ outcome: "processed" });
  expect(await booksOf(inbox, id)).toMatchObject({
    invoice: { status: "paid", amount_paid: 900 },
    entries: [{ amount: 900, event_id: money.id }],
    messages: [{ amount: 900, event_id: money.id }],
    discrepancies: [],
  });
});

test.each([
  ["eur", "eur"],
  ["EUR", "eur"],
  ["eU", null],
  ["euro", null],
  ["", null],
  ["e1r", null],
  [" eu", null],
  // These look like letters of the alphabet and are none: the Kelvin sign, the long s.
  ["\u212Awd", null],
  ["u\u017Fd", null],
  [978, null],
  [null, null],
  [undefined, null],
  [["eur"], null],
])("the currency %j is booked as %j", async (currency, stored) => {
  const id = freshId("in");
  const event = withFields(anInvoiceEvent("invoice.paid", { id }), { currency });
  expect(await inbox.deliver(event)).toMatchObject({ status: 200, outcome: "processed" });
  expect(await booksOf(inbox, id)).toMatchObject({
    invoice: { currency: stored },
    entries: [{ amount: 4200, currency: stored }],
    messages: [{ amount: 4200, currency: stored }],
  });
});

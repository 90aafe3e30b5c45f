/** A second payment event that disagrees with the booked entry changes nothing; a person is asked. */
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

const eur = { amountPaid: 4200, currency: "eur" };

test.each([
  { says: "another amount", second: { amountPaid: 4300, currency: "eur" } },
  { says: "another currency", second: { amountPaid: 4200, currency: "usd" } },
  { says: "another of both", second: { amountPaid: 4300, currency: "usd" } },
  { says: "no amount at all", second: { amountPaid: 0, currency: "eur" } },
])(
  "a second payment event with $says: the entry stays, a person is asked once",
  async ({ second }) => {
    const id = freshId("in");
    await deliver(anInvoiceEvent("invoice.paid", { id, ...eur }));
    const [row, before] = [await rowOf(inbox, id), await booksOf(inbox, id)];
    const others = [
      anInvoiceEvent("invoice.payment_succeeded", { id, ...second }),
      anInvoiceEvent("invoice.paid", { id, ...second }),
      anInvoiceEvent("invoice.paid", { id, ...second, amountPaid: 9900 }),
    ];
    await deliver(...others);
    expect(await rowOf(inbox, id)).toEqual(row);
    expect(await booksOf(inbox, id)).toEqual({
      ...before,
      discrepancies: [{ kind: "payment_mismatch", event_id: others[0]?.id }],
    });
  },
);

test.each([
  { name: "the same", first: eur, second: { amount_paid: 4200, currency: "eur" } },
  { name: "the same in capitals", first: eur, second: { amount_paid: 4200, currency: "EUR" } },
  { name: "an unknown currency", first: eur, second: { amount_paid: 4200, currency: null } },
  {
    name: "a currency that the first one lacked",
    first: { ...eur, currency: "" },
    second: { amount_paid: 4200, currency: "eur" },
  },
])("a second payment event with $name is no contradiction", async ({ first, second }) => {
  const id = freshId("in");
  await deliver(
    anInvoiceEvent("invoice.paid", { id, ...first }),
    withFields(anInvoiceEvent("invoice.payment_succeeded", { id }), second),
  );
  expect(await booksOf(inbox, id)).toMatchObject({
    entries: [{ amount: 4200 }],
    discrepancies: [],
  });
});

test("an unknown currency hides no other amount", async () => {
  const id = freshId("in");
  await deliver(
    anInvoiceEvent("invoice.paid", { id, ...eur }),
    withFields(anInvoiceEvent("invoice.paid", { id, amountPaid: 1 }), { currency: null }),
  );
  expect((await booksOf(inbox, id)).discrepancies).toMatchObject([{ kind: "payment_mismatch" }]);
});

/** Invoices are read in the shape of any API version, and what cannot be read is never guessed. */
import { beforeAll, expect, test } from "vitest";
import { stripeEvent, UNRELATED } from "../local/events.ts";
import { API_VERSIONS } from "../local/invoice-shapes.ts";
import { booksOf, recordOf, withFields } from "./invoices.ts";
import { anInvoiceEvent, freshId, openTestbed, type Testbed } from "./testbed.ts";

let inbox: Testbed;

beforeAll(async () => {
  inbox = await openTestbed();
});

test.each(API_VERSIONS)("a paid invoice of API version %s is booked alike", async (apiVersion) => {
  const id = freshId("in");
  const event = anInvoiceEvent("invoice.paid", { id }, { apiVersion });
  expect("status" in (event.data?.object ?? {})).toBe(apiVersion !== "2018-10-31");
  expect(await inbox.deliver(event)).toMatchObject({ status: 200, outcome: "processed" });
  const entry = { amount: 4200, currency: "eur", event_id: event.id };
  expect(await booksOf(inbox, id)).toEqual({
    invoice: {
      status: "paid",
      customer_id: "cus_test",
      currency: "eur",
      amount_paid: 4200,
      paid: true,
    },
    entries: [entry],
    messages: [{ ...entry, invoice_id: id, customer_id: "cus_test" }],
    discrepancies: [],
  });
});

test.each([
  ["invoice.created", "draft"],
  ["invoice.finalized", "open"],
  ["invoice.payment_failed", "open"],
  ["invoice.updated", "open"],
  ["invoice.marked_uncollectible", "uncollectible"],
  ["invoice.voided", "void"],
  ["invoice.paid", "paid"],
  ["invoice.payment_succeeded", "paid"],
] as const)("where the invoice has no status, %s says that it is %s", async (type, status) => {
  const [old, nulled] = [freshId("in"), freshId("in")];
  await inbox.deliver(anInvoiceEvent(type, { id: old, status }, { apiVersion: "2018-10-31" }));
  await inbox.deliver(withFields(anInvoiceEvent(type, { id: nulled }), { status: null }));
  expect((await booksOf(inbox, old)).invoice?.status).toBe(status);
  expect((await booksOf(inbox, nulled)).invoice?.status).toBe(status);
});

test("the smallest object that tells of a payment is booked", async () => {
  const id = freshId("in");
  const object = { id, customer: "cus_small", amount_paid: 700 };
  const event = { id: freshId("evt"), type: "invoice.paid", data: { object } };
  expect(await inbox.deliver(event)).toMatchObject({ status: 200, outcome: "processed" });
  expect(await booksOf(inbox, id)).toMatchObject({
    invoice: { status: "paid", customer_id: "cus_small", currency: null, amount_paid: 700 },
    entries: [{ amount: 700, currency: null, event_id: event.id }],
    messages: [{ amount: 700, currency: null, customer_id: "cus_small" }],
  });
});

const unpaidOfOld = { paid: false, charge: null, payment_intent: null, closed: false };
const paidOfOld = { paid: true, charge: "ch_1", payment_intent: "pi_1", closed: true };

test("removed fields that deny a payment do not undo it", async () => {
  const id = freshId("in");
  await inbox.deliver(withFields(anInvoiceEvent("invoice.paid", { id }), unpaidOfOld));
  expect(await booksOf(inbox, id)).toMatchObject({
    invoice: { status: "paid" },
    entries: [{ amount: 4200 }],
  });
});

test.each(["invoice.updated", "invoice.payment_succeeded", "invoice.payment_failed"] as const)(
  "removed fields that claim a payment make none of %s",
  async (type) => {
    const id = freshId("in");
    const open = { ...paidOfOld, amount_paid: 4200, amount_remaining: 0 };
    await inbox.deliver(withFields(anInvoiceEvent(type, { id, status: "open" }), open));
    expect(await booksOf(inbox, id)).toMatchObject({
      invoice: { status: "open", amount_paid: 0, paid: false },
      entries: [],
      messages: [],
    });
  },
);

test.each([
  ["invoice.marked_uncollectible", "draft"],
  ["invoice.voided", "open"],
  ["invoice.created", "uncollectible"],
  ["invoice.payment_failed", "void"],
  ["invoice.payment_succeeded", "open"],
  ["invoice.payment_succeeded", "draft"],
] as const)(
  "where %s carries an invoice that is %s, the invoice is believed",
  async (type, status) => {
    const id = freshId("in");
    const answer = await inbox.deliver(anInvoiceEvent(type, { id, status }));
    expect(answer).toMatchObject({ status: 200, outcome: "processed" });
    expect(await booksOf(inbox, id)).toMatchObject({
      invoice: { status, amount_paid: 0 },
      entries: [],
      messages: [],
      discrepancies: [],
    });
  },
);

test.each([
  ["cus_1", "cus_1"],
  [{ id: "cus_1" }, "cus_1"],
  [{ id: "cus_1", object: "customer", name: "Saoirse", email: "s@example.test" }, "cus_1"],
  [{ id: "cus_1", object: "customer", deleted: true }, "cus_1"],
  [null, null],
  [undefined, null],
  ["", null],
  [7, null],
  [[], null],
  [["cus_1"], null],
  [{}, null],
  [{ id: null }, null],
  [{ id: "" }, null],
  [{ id: 7 }, null],
  [{ deleted: true }, null],
])("the customer %j is stored as %j", async (customer, stored) => {
  const id = freshId("in");
  const event = withFields(anInvoiceEvent("invoice.paid", { id }), { customer });
  expect(await inbox.deliver(event)).toMatchObject({ status: 200, outcome: "processed" });
  expect(await booksOf(inbox, id)).toMatchObject({
    invoice: { customer_id: stored },
    messages: [{ customer_id: stored }],
  });
});

test("a customer of any length is stored, in whichever mode, though an index takes none so long", async () => {
  const customer = "\u{1f600}".repeat(100_000);
  for (const mode of ["sync", "async"]) {
    const receiver = await openTestbed({ env: { RECEIVE_MODE: mode } });
    const event = withFields(anInvoiceEvent("invoice.paid", { id: "in_long" }), { customer });
    const { outcome } = await receiver.deliver(event);
    expect(outcome).toBe(mode === "sync" ? "processed" : "stored");
    const [row] = await receiver.rows("select length(customer_id) as length from invoices");
    expect(row).toEqual({ length: 100_000 });
  }
});

test("the preview of an invoice, which has no id, is ignored", async () => {
  const object = UNRELATED["invoice.upcoming"]?.("test") ?? {};
  expect(object).not.toHaveProperty("id");
  const options = { id: freshId("evt"), livemode: false, created: 1_790_000_000 };
  const event = stripeEvent("invoice.upcoming", object, {
    ...options,
    apiVersion: "2026-10-28.endive",
  });
  expect(await inbox.deliver(event)).toMatchObject({ status: 200, outcome: "ignored" });
  expect(await recordOf(inbox, event.id)).toMatchObject({ outcome: "ignored", parked: false });
});

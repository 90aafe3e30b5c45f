/** In whatever order the events of an invoice arrive, its state never goes back. */
import { beforeAll, expect, test } from "vitest";
import type { InvoiceEventType } from "../local/events.ts";
import type { InvoiceStatus } from "../local/invoice-shapes.ts";
import { booksOf, recordOf, rowOf, withFields } from "./invoices.ts";
import { anInvoiceEvent, freshId, openTestbed, type Testbed } from "./testbed.ts";

let inbox: Testbed;

beforeAll(async () => {
  inbox = await openTestbed();
});

const STATUSES = ["draft", "open", "uncollectible", "paid", "void"] as const;

type Word = readonly [type: InvoiceEventType, says: InvoiceStatus];
const created: Word = ["invoice.created", "draft"];
const finalized: Word = ["invoice.finalized", "open"];
const updated: Word = ["invoice.updated", "open"];
const failed: Word = ["invoice.payment_failed", "open"];
const givenUp: Word = ["invoice.marked_uncollectible", "uncollectible"];
const paid: Word = ["invoice.paid", "paid"];
const voided: Word = ["invoice.voided", "void"];

const say = (id: string, [type, status]: Word, changed = 1_790_000_000) =>
  anInvoiceEvent(type, { id, status, changed });

test.each([
  [[created, finalized, paid]],
  [[created, paid, finalized]],
  [[finalized, created, paid]],
  [[finalized, paid, created]],
  [[paid, created, finalized]],
  [[paid, finalized, created]],
])("created, finalized and paid, arriving as %j, end as one paid invoice", async (words) => {
  const id = freshId("in");
  const payment = say(id, paid);

  for (const word of words) {
    const event = word === paid ? payment : say(id, word);
    expect(await inbox.deliver(event)).toMatchObject({ status: 200, outcome: "processed" });
  }

  const booked = { amount: 4200, currency: "eur", event_id: payment.id };
  expect(await booksOf(inbox, id)).toEqual({
    invoice: {
      status: "paid",
      customer_id: "cus_test",
      currency: "eur",
      amount_paid: 4200,
      paid: true,
    },
    entries: [booked],
    messages: [{ ...booked, invoice_id: id, customer_id: "cus_test" }],
    discrepancies: [],
  });
});

test.each([
  { first: givenUp, next: paid, end: "paid" },
  { first: givenUp, next: voided, end: "void" },
  { first: givenUp, next: failed, end: "uncollectible" },
  { first: paid, next: givenUp, end: "paid" },
  { first: voided, next: givenUp, end: "void" },
  { first: paid, next: updated, end: "paid" },
  { first: updated, next: paid, end: "paid" },
])("$first.0, then $next.0: the invoice is $end", async ({ first, next, end }) => {
  const id = freshId("in");
  // Both were created in the same second: that field cannot tell which came first.
  for (const word of [first, next]) {
    expect(await inbox.deliver(say(id, word))).toMatchObject({ status: 200, outcome: "processed" });
  }
  expect((await booksOf(inbox, id)).invoice).toMatchObject({ status: end, paid: end === "paid" });
});

test.each([
  { name: "older", changed: 1_780_000_000 },
  { name: "younger", changed: 1_800_000_000 },
])("an event that calls itself $name is judged by what it says", async ({ changed }) => {
  const [rises, stays] = [freshId("in"), freshId("in")];
  for (const id of [rises, stays]) await inbox.deliver(say(id, finalized));
  await inbox.deliver(say(rises, paid, changed));
  await inbox.deliver(say(stays, created, changed));
  expect((await booksOf(inbox, rises)).invoice?.status).toBe("paid");
  expect((await booksOf(inbox, stays)).invoice?.status).toBe("open");
});

test("once paid, older news of every kind leaves the row and the ledger as they are", async () => {
  const id = freshId("in");
  await inbox.deliver(say(id, paid));
  const [row, books] = [await rowOf(inbox, id), await booksOf(inbox, id)];
  for (const word of [failed, finalized, updated, created, givenUp]) {
    expect(await inbox.deliver(say(id, word))).toMatchObject({ outcome: "processed" });
    expect(await rowOf(inbox, id)).toEqual(row);
  }
  expect(await booksOf(inbox, id)).toEqual(books);
});

test("a deletion is processed and leaves the row, whether it comes last or first", async () => {
  const id = freshId("in");
  const deletion = (): ReturnType<typeof say> => say(id, ["invoice.deleted", "draft"]);
  expect(await inbox.deliver(deletion())).toMatchObject({ outcome: "processed" });
  expect(await rowOf(inbox, id)).toBeUndefined();
  await inbox.deliver(say(id, created));
  const row = await rowOf(inbox, id);
  expect(row).toMatchObject({ status: "draft" });
  expect(await inbox.deliver(deletion())).toMatchObject({ outcome: "processed" });
  expect(await rowOf(inbox, id)).toEqual(row);
});

test("a deletion is processed even where nothing of its invoice can be read", async () => {
  for (const fields of [
    { id: undefined },
    { id: 7, status: "shredded", amount_paid: "much", currency: {}, customer: [] },
  ]) {
    const event = withFields(anInvoiceEvent("invoice.deleted"), fields);
    expect(await inbox.deliver(event)).toMatchObject({ status: 200, outcome: "processed" });
    expect(await recordOf(inbox, event.id)).toMatchObject({ outcome: "processed", parked: false });
  }
  expect(await rowOf(inbox, "7")).toBeUndefined();
});

test("a change that names no status opens a new invoice", async () => {
  const id = freshId("in");
  await inbox.deliver(withFields(say(id, updated), { status: undefined }));
  expect((await booksOf(inbox, id)).invoice).toMatchObject({ status: "open", amount_paid: 0 });
});

test.each(STATUSES)("a change that names no status leaves a known invoice %s", async (status) => {
  const id = freshId("in");
  await inbox.deliver(say(id, ["invoice.updated", status]));
  const row = await rowOf(inbox, id);
  await inbox.deliver(withFields(say(id, updated), { status: undefined }));
  expect(await rowOf(inbox, id)).toEqual(row);
  expect(row).toMatchObject({ status });
});

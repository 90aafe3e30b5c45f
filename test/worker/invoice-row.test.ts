/** What is known of an invoice first stays known, and a row that nothing changes is not written. */
import { beforeAll, expect, test } from "vitest";
import { booksOf, rowOf, withFields } from "./invoices.ts";
import { anInvoiceEvent, freshId, openTestbed, type Testbed } from "./testbed.ts";

let inbox: Testbed;

beforeAll(async () => {
  inbox = await openTestbed();
});

const unnamed = { customer: undefined, currency: undefined };

test("the first customer and currency stay; the booking keeps its own currency", async () => {
  const id = freshId("in");
  const first = { id, status: "draft", customer: "cus_first", currency: "eur" } as const;
  await inbox.deliver(anInvoiceEvent("invoice.created", first));
  const second = { id, customer: "cus_second", currency: "usd" };
  await inbox.deliver(anInvoiceEvent("invoice.paid", second));
  expect(await booksOf(inbox, id)).toMatchObject({
    invoice: { customer_id: "cus_first", currency: "eur", status: "paid" },
    entries: [{ currency: "usd" }],
    messages: [{ customer_id: "cus_first", currency: "usd" }],
  });
});

test("an unknown customer and currency are learnt later, even from older news", async () => {
  const id = freshId("in");
  await inbox.deliver(withFields(anInvoiceEvent("invoice.paid", { id }), unnamed));
  expect((await booksOf(inbox, id)).invoice).toMatchObject({ customer_id: null, currency: null });

  const open = anInvoiceEvent("invoice.updated", { id, status: "open" });
  await inbox.deliver(withFields(open, { currency: undefined, customer: "cus_late" }));
  expect((await booksOf(inbox, id)).invoice).toMatchObject({
    customer_id: "cus_late",
    currency: null,
  });
  const draft = { id, status: "draft", customer: "cus_later", currency: "gbp" } as const;
  await inbox.deliver(anInvoiceEvent("invoice.created", draft));
  expect((await booksOf(inbox, id)).invoice).toEqual({
    status: "paid",
    customer_id: "cus_late",
    currency: "gbp",
    amount_paid: 4200,
    paid: true,
  });
});

test("an event that names no customer and no currency takes none away", async () => {
  const id = freshId("in");
  await inbox.deliver(anInvoiceEvent("invoice.created", { id, status: "draft" }));
  await inbox.deliver(withFields(anInvoiceEvent("invoice.paid", { id }), unnamed));
  expect((await booksOf(inbox, id)).invoice).toMatchObject({
    status: "paid",
    customer_id: "cus_test",
    currency: "eur",
  });
});

/** Every row's change has the time of the transaction that settled the event. */
const settledAt = async (eventId: string): Promise<unknown> => {
  const [row] = await inbox.rows("select processed_at from webhook_inbox where event_id = $1", [
    eventId,
  ]);
  return row?.["processed_at"];
};

test("paid_at is the time of the first event that said paid, and stays", async () => {
  const id = freshId("in");
  const events = [
    anInvoiceEvent("invoice.finalized", { id, status: "open" }),
    anInvoiceEvent("invoice.updated", { id }),
    anInvoiceEvent("invoice.paid", { id }),
    anInvoiceEvent("invoice.payment_succeeded", { id, amountPaid: 4300 }),
    anInvoiceEvent("invoice.voided", { id, status: "void" }),
  ];
  const paidAt: unknown[] = [];
  for (const event of events) {
    await inbox.deliver(event);
    paidAt.push((await rowOf(inbox, id))?.["paid_at"]);
  }
  const first = await settledAt(events[1]?.id ?? "");
  expect(first).toBeInstanceOf(Date);
  expect(paidAt).toEqual([null, first, first, first, first]);
});

test.each(["invoice.paid", "invoice.updated"] as const)(
  "an invoice that %s alone tells of has its paid_at from there",
  async (type) => {
    const event = anInvoiceEvent(type);
    await inbox.deliver(event);
    const row = await rowOf(inbox, String(event.data?.object["id"]));
    expect(row?.["paid_at"]).toEqual(await settledAt(event.id));
  },
);

test("amount_paid is that of the booking event, whatever others say before and after", async () => {
  const id = freshId("in");
  const amounts: unknown[] = [];
  for (const event of [
    anInvoiceEvent("invoice.finalized", { id, status: "open", amountPaid: 100 }),
    anInvoiceEvent("invoice.payment_succeeded", { id, status: "open", amountPaid: 200 }),
    anInvoiceEvent("invoice.updated", { id, amountPaid: 300 }),
    anInvoiceEvent("invoice.paid", { id, amountPaid: 400 }),
    anInvoiceEvent("invoice.updated", { id, amountPaid: 500 }),
    anInvoiceEvent("invoice.payment_succeeded", { id, amountPaid: 600 }),
    anInvoiceEvent("invoice.paid", { id, amountPaid: 0 }),
  ]) {
    await inbox.deliver(event);
    amounts.push((await booksOf(inbox, id)).invoice?.amount_paid);
  }
  expect(amounts).toEqual([0, 0, 0, 400, 400, 400, 400]);
});

test("updated_at is the time of the last event that changed the row", async () => {
  const id = freshId("in");
  const open = { id, status: "open" } as const;
  const steps = [
    { changes: true, event: withFields(anInvoiceEvent("invoice.created", open), unnamed) },
    { changes: false, event: withFields(anInvoiceEvent("invoice.updated", open), unnamed) },
    { changes: true, event: anInvoiceEvent("invoice.updated", open) },
    { changes: false, event: anInvoiceEvent("invoice.finalized", open) },
    { changes: true, event: anInvoiceEvent("invoice.updated", { id }) },
    { changes: true, event: anInvoiceEvent("invoice.paid", { id }) },
    { changes: false, event: anInvoiceEvent("invoice.payment_succeeded", { id }) },
    { changes: false, event: anInvoiceEvent("invoice.voided", { id, status: "void" }) },
    { changes: false, event: anInvoiceEvent("invoice.deleted", { id, status: "draft" }) },
  ];
  let last: unknown;
  for (const { changes, event } of steps) {
    await inbox.deliver(event);
    if (changes) last = await settledAt(event.id);
    expect((await rowOf(inbox, id))?.["updated_at"], event.type).toEqual(last);
  }
});

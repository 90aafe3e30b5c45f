/** An event that waits for another writer of its invoice decides on what that writer committed. */
import { expect, test } from "vitest";
import type { StripeEvent } from "../local/events.ts";
import { untilSomeoneWaits, whileAnother } from "./disturbances.ts";
import { booksOf, type InvoiceBooks } from "./invoices.ts";
import { anInvoiceEvent, freshId, openTestbed } from "./testbed.ts";

const OPEN = "insert into invoices (id, status) values ($1, 'open')";
const VOID_UNKNOWN = "insert into invoices (id, status) values ($1, 'void')";
const VOID_KNOWN = "update invoices set status = 'void' where id = $1";
const PAY_KNOWN = `update invoices set status = 'paid', paid_at = now(), amount_paid = 10
  where id = $1`;
const BOOK = `insert into ledger_entries (invoice_id, kind, amount, currency, event_id)
  values ($1, 'payment', 10, 'eur', 'evt_other')`;

interface Encounter {
  /** What the invoice was before; null when it was unknown. */
  readonly before: string | null;
  /** What the other writer has done, and commits once the event waits for it. */
  readonly other: readonly string[];
  readonly event: StripeEvent;
}

/** The invoice's books after the event, which met the other writer at work. */
async function meet({ before, other, event }: Encounter): Promise<InvoiceBooks> {
  const inbox = await openTestbed();
  const id = String(event.data?.object["id"]);
  if (before !== null) await inbox.rows(before, [id]);
  await whileAnother(inbox, async (writer) => {
    for (const statement of other) await writer.query(statement, [id]);
    const delivery = inbox.deliver(event);
    await untilSomeoneWaits(inbox);
    await writer.query("commit");
    expect(await delivery).toMatchObject({ status: 200, outcome: "processed" });
  });
  return booksOf(inbox, id);
}

test.each([
  { name: "a known", before: OPEN, other: [VOID_KNOWN] },
  { name: "an unknown", before: null, other: [VOID_UNKNOWN] },
])("a payment that waits while $name invoice is voided books nothing", async (writers) => {
  const event = anInvoiceEvent("invoice.paid");
  expect(await meet({ ...writers, event })).toMatchObject({
    invoice: { status: "void", amount_paid: 0 },
    entries: [],
    messages: [],
    discrepancies: [{ kind: "paid_after_void", event_id: event.id }],
  });
});

test("a void that waits while the invoice is paid leaves it paid, and a person is asked", async () => {
  const event = anInvoiceEvent("invoice.voided", { id: freshId("in"), status: "void" });
  expect(await meet({ before: OPEN, other: [PAY_KNOWN, BOOK], event })).toMatchObject({
    invoice: { status: "paid", amount_paid: 10 },
    entries: [{ event_id: "evt_other" }],
    discrepancies: [{ kind: "void_after_paid", event_id: event.id }],
  });
});

test("a payment that waits while another amount is booked adds none, and a person is asked", async () => {
  const event = anInvoiceEvent("invoice.paid");
  expect(await meet({ before: OPEN, other: [PAY_KNOWN, BOOK], event })).toMatchObject({
    invoice: { status: "paid", amount_paid: 10 },
    entries: [{ amount: 10, event_id: "evt_other" }],
    messages: [],
    discrepancies: [{ kind: "payment_mismatch", event_id: event.id }],
  });
});

test("a payment that waits while an update makes the invoice paid is booked", async () => {
  const event = anInvoiceEvent("invoice.paid");
  const paid = PAY_KNOWN.replace("amount_paid = 10", "amount_paid = 0");
  expect(await meet({ before: OPEN, other: [paid], event })).toMatchObject({
    invoice: { status: "paid", amount_paid: 4200 },
    entries: [{ amount: 4200, event_id: event.id }],
    messages: [{ amount: 4200, event_id: event.id }],
    discrepancies: [],
  });
});

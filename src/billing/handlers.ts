/**
 * One small handler per invoice event. What it tells of the invoice is booked by one statement,
 * which many events share where they are processed together.
 *
 * Every write is a Drizzle query of `tx`, so that one which is forgotten is a lint error.
 */
import { sql } from "drizzle-orm";
import type { Tx, Write } from "../db/connect.ts";
import { RowWrite } from "../db/row-write.ts";
import { invoices, ledgerEntries } from "../db/schema.ts";
import type { HandlerTable } from "../inbox/handler.ts";
import { openDiscrepancy } from "../reconcile/discrepancies.ts";
import type { StripeEvent } from "../stripe/verify.ts";
import { booking } from "./booking.ts";
import { type InvoiceNews, readInvoice } from "./invoice.ts";
import type { Contradiction, InvoiceEventType } from "./lifecycle.ts";

export const invoiceHandlers = {
  "invoice.created": follow,
  "invoice.finalized": follow,
  "invoice.updated": follow,
  "invoice.payment_failed": follow,
  "invoice.marked_uncollectible": follow,
  "invoice.voided": followVoid,
  // Stripe sends both for one payment. Whichever comes first books it, whatever the invoice's row
  // already says: an `invoice.updated` may have made it paid before.
  "invoice.paid": pay,
  "invoice.payment_succeeded": pay,
  // Only drafts can be deleted; the row stays as the last thing that was known.
  "invoice.deleted": () => [],
} satisfies HandlerTable;

function follow(event: StripeEvent<InvoiceEventType>, tx: Tx): Write[] {
  return [tell(tx, event.id, readInvoice(event.type, event.data.object))];
}

function followVoid(event: StripeEvent<"invoice.voided">, tx: Tx): Write[] {
  return [tell(tx, event.id, readInvoice(event.type, event.data.object), "void_after_paid")];
}

function pay(event: StripeEvent<"invoice.paid" | "invoice.payment_succeeded">, tx: Tx): Write[] {
  const invoice = readInvoice(event.type, event.data.object);
  if (invoice.payment === null) return [tell(tx, event.id, invoice)];
  const told = tell(tx, event.id, invoice, "paid_after_void");
  return invoice.payment === 0 ? [told, openMismatch(tx, event.id, invoice)] : [told];
}

function tell(
  tx: Tx,
  eventId: string,
  invoice: InvoiceNews,
  disputes: Contradiction | null = null,
) {
  const { id, says, customerId, currency, payment } = invoice;
  return says === null
    ? meet(tx, invoice)
    : new RowWrite(tx, booking, {
        id,
        says,
        customer_id: customerId,
        currency,
        payment,
        disputes,
        event_id: eventId,
      });
}

/** Something changed, and the event does not say what: an invoice that is new is open. */
function meet(tx: Tx, { id, customerId, currency }: InvoiceNews) {
  const { customerId: customer, currency: known } = invoices;
  return tx
    .insert(invoices)
    .values({ id, customerId, status: "open", currency })
    .onConflictDoUpdate({
      target: invoices.id,
      set: {
        customerId: sql`coalesce(${customer}, excluded.customer_id)`,
        currency: sql`coalesce(${known}, excluded.currency)`,
        updatedAt: sql`now()`,
      },
      setWhere: sql`(${customer} is null and excluded.customer_id is not null)
        or (${known} is null and excluded.currency is not null)`,
    });
}

/** A payment of nothing for an invoice of which something was booked. */
function openMismatch(tx: Tx, eventId: string, { id, currency }: InvoiceNews) {
  return openDiscrepancy(tx, {
    kind: "payment_mismatch",
    objectId: id,
    eventId,
    detail: sql`jsonb_build_object('booked_amount', amount, 'booked_currency', currency,
      'booked_by', event_id, 'amount', 0, 'currency', ${currency}::text)`,
    evidence: sql`from ${ledgerEntries} where invoice_id = ${id} and kind = 'payment'`,
  });
}

/**
 * One small handler per invoice event: the lifecycle's table, rendered into SQL.
 *
 * No state is read first. The upsert of the invoice locks its row even where it changes nothing,
 * and the statements behind it decide on that locked row. All lock in the same order (invoice,
 * ledger, outbox), so that two events of one invoice cannot deadlock.
 *
 * Every write is a Drizzle query of `tx`, so that one which is forgotten is a lint error.
 */
import { inArray, sql } from "drizzle-orm";
import type { Tx, Write } from "../db/connect.ts";
import { invoices, ledgerEntries } from "../db/schema.ts";
import type { HandlerTable } from "../inbox/handler.ts";
import { enqueueFrom } from "../outbox/enqueue.ts";
import { openDiscrepancy } from "../reconcile/discrepancies.ts";
import type { StripeEvent } from "../stripe/verify.ts";
import { type InvoiceNews, readInvoice } from "./invoice.ts";
import {
  type Contradiction,
  type InvoiceEventType,
  statesContradictedBy,
  statesMovedBy,
} from "./lifecycle.ts";

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
  return [upsertInvoice(tx, readInvoice(event.type, event.data.object))];
}

function followVoid(event: StripeEvent<"invoice.voided">, tx: Tx): Write[] {
  const invoice = readInvoice(event.type, event.data.object);
  return [upsertInvoice(tx, invoice), openContradiction(tx, event.id, invoice, "void_after_paid")];
}

function pay(event: StripeEvent<"invoice.paid" | "invoice.payment_succeeded">, tx: Tx): Write[] {
  const invoice = readInvoice(event.type, event.data.object);
  const { payment } = invoice;
  const upsert = upsertInvoice(tx, invoice);
  if (payment === null) return [upsert];
  return [
    upsert,
    ...(payment > 0 ? [bookPayment(tx, event.id, invoice, payment)] : []),
    openContradiction(tx, event.id, invoice, "paid_after_void"),
    openMismatch(tx, event.id, invoice, payment),
  ];
}

/** What is known first stays known; a row that would not change is locked, not written. */
function upsertInvoice(tx: Tx, invoice: InvoiceNews) {
  const moves = inArray(invoices.status, invoice.says ? statesMovedBy(invoice.says) : []);
  const learnsCustomer = sql`${invoices.customerId} is null and excluded.customer_id is not null`;
  const learnsCurrency = sql`${invoices.currency} is null and excluded.currency is not null`;
  const learnsAmount = sql`${invoices.status} <> 'void' and ${invoices.amountPaid} = 0
    and excluded.amount_paid > 0`;
  return tx
    .insert(invoices)
    .values({
      id: invoice.id,
      customerId: invoice.customerId,
      status: invoice.says ?? "open",
      currency: invoice.currency,
      amountPaid: invoice.payment ?? 0,
      paidAt: invoice.says === "paid" ? sql`now()` : null,
    })
    .onConflictDoUpdate({
      target: invoices.id,
      set: {
        status: sql`case when ${moves} then excluded.status else ${invoices.status} end`,
        paidAt: sql`case when ${moves} then excluded.paid_at else ${invoices.paidAt} end`,
        customerId: sql`coalesce(${invoices.customerId}, excluded.customer_id)`,
        currency: sql`coalesce(${invoices.currency}, excluded.currency)`,
        amountPaid: sql`case when ${learnsAmount} then excluded.amount_paid
          else ${invoices.amountPaid} end`,
        updatedAt: sql`now()`,
      },
      setWhere: sql`(${moves}) or (${learnsCustomer}) or (${learnsCurrency}) or (${learnsAmount})`,
    });
}

/** The ledger's unique key decides; the message is sent for an entry that was really written. */
function bookPayment(tx: Tx, eventId: string, invoice: InvoiceNews, amount: number) {
  return tx.execute(sql`
    with entry as (
      insert into ${ledgerEntries} (invoice_id, kind, amount, currency, event_id)
      select id, 'payment', ${amount}::bigint, ${invoice.currency}::text, ${eventId}::text
      from ${invoices} where id = ${invoice.id} and status = 'paid'
      on conflict (invoice_id, kind) do nothing
      returning *
    ), booked as (
      select entry.*, ${invoices.customerId}
      from entry join ${invoices} on ${invoices.id} = entry.invoice_id
    )
    ${enqueueFrom(sql`booked`, {
      aggregateType: "Invoice",
      aggregateId: sql`invoice_id`,
      eventType: "InvoicePaymentBooked",
      payload: sql`jsonb_build_object('invoice_id', invoice_id, 'amount', amount,
        'currency', currency, 'customer_id', customer_id, 'event_id', event_id)`,
    })}`);
}

function openContradiction(tx: Tx, eventId: string, invoice: InvoiceNews, kind: Contradiction) {
  const contradicted = invoice.says ? statesContradictedBy(invoice.says, kind) : [];
  return openDiscrepancy(tx, {
    kind,
    objectId: invoice.id,
    eventId,
    detail: sql`jsonb_build_object('status', status, 'event_says', ${invoice.says}::text,
      'amount', ${invoice.payment}::bigint, 'currency', ${invoice.currency}::text)`,
    evidence: sql`from ${invoices} where id = ${invoice.id}
      and ${inArray(invoices.status, contradicted)}`,
  });
}

/** A second payment event that disagrees with the entry; unknown currencies agree with any. */
function openMismatch(tx: Tx, eventId: string, invoice: InvoiceNews, amount: number) {
  return openDiscrepancy(tx, {
    kind: "payment_mismatch",
    objectId: invoice.id,
    eventId,
    detail: sql`jsonb_build_object('booked_amount', amount, 'booked_currency', currency,
      'booked_by', event_id, 'amount', ${amount}::bigint, 'currency', ${invoice.currency}::text)`,
    evidence: sql`from ${ledgerEntries} where invoice_id = ${invoice.id} and kind = 'payment'
      and (amount <> ${amount}::bigint or currency <> ${invoice.currency}::text)`,
  });
}

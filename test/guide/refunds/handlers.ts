/** What events about refunds and credit notes make of the books. */
import { eq, sql } from "drizzle-orm";
import type { Tx, Write } from "../../../src/db/connect.ts";
import { invoices } from "../../../src/db/schema.ts";
import type { HandlerTable } from "../../../src/inbox/handler.ts";
import { PermanentError } from "../../../src/inbox/retry.ts";
import { enqueueFrom } from "../../../src/outbox/enqueue.ts";
import type { StripeEvent } from "../../../src/stripe/verify.ts";
import { chargeRefunds, creditNotes } from "./schema.ts";

export const refundHandlers = {
  // For a part of the charge, too, and once for each part.
  "charge.refunded": bookRefund,
  "credit_note.created": bookCreditNote,
} satisfies HandlerTable;

export function bookRefund(event: StripeEvent<"charge.refunded">, tx: Tx): Write[] {
  const charge = event.data.object;
  const amount = readAmount(charge.amount_refunded, "amount_refunded_unusable");
  if (amount === 0) return [];
  return [
    tx.execute(sql`
      with refund as (
        insert into ${chargeRefunds} as known (charge_id, customer_id, currency, amount, event_id)
        values (${charge.id}, ${idOf(charge.customer)}, ${charge.currency}, ${amount}, ${event.id})
        on conflict (charge_id) do update set
          amount = excluded.amount, event_id = excluded.event_id, updated_at = now()
        where excluded.amount > known.amount
        returning *
      )
      ${enqueueFrom(sql`refund`, {
        aggregateType: "Charge",
        aggregateId: sql`charge_id`,
        eventType: "RefundBooked",
        payload: sql`jsonb_build_object('charge_id', charge_id, 'amount', amount,
          'currency', currency, 'customer_id', customer_id, 'event_id', event_id,
          'account', ${event.account ?? null}::text)`,
      })}`),
  ];
}

export async function bookCreditNote(
  event: StripeEvent<"credit_note.created">,
  tx: Tx,
): Promise<Write[]> {
  const note = event.data.object;
  const amount = readAmount(note.amount, "credit_note_amount_unusable");
  const givenBack = readAmount(partGivenBack(note), "post_payment_amount_unusable");
  const invoiceId = idOf(note.invoice);
  if (invoiceId === null) throw new PermanentError("credit_note_without_invoice");
  if (givenBack > 0 && !(await isPaid(invoiceId, tx))) throw new InvoiceNotPaidYet();
  const { id, currency } = note;
  return [
    tx
      .insert(creditNotes)
      .values({ id, invoiceId, currency, amount, givenBack, eventId: event.id })
      .onConflictDoNothing(),
  ];
}

/** The payment is on its way: tried again, and parked if it never comes. */
class InvoiceNotPaidYet extends Error {
  override readonly name = "InvoiceNotPaidYet";
}

/** `paid` is final here: what was read once stays true. */
async function isPaid(invoiceId: string, tx: Tx): Promise<boolean> {
  const [invoice] = await tx
    .select({ status: invoices.status })
    .from(invoices)
    .where(eq(invoices.id, invoiceId));
  return invoice?.status === "paid";
}

/** Older API versions say by its type whether all or nothing of it is given back. */
function partGivenBack(note: StripeEvent<"credit_note.created">["data"]["object"]): unknown {
  const { post_payment_amount: part }: { readonly post_payment_amount?: unknown } = note;
  return part ?? (note.type === "post_payment" ? note.amount : 0);
}

/** @throws PermanentError for what would have to be rounded. */
function readAmount(value: unknown, reason: string): number {
  if (typeof value === "number" && Number.isSafeInteger(value) && value >= 0) return value;
  throw new PermanentError(reason);
}

/** Stripe sends an object's id, or the object itself where it was asked to. */
function idOf(reference: string | { readonly id: string } | null | undefined): string | null {
  return typeof reference === "string" ? reference : (reference?.id ?? null);
}

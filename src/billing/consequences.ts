/**
 * What follows outside from what was booked: one call for each kind of message, made from the
 * message alone, so that a repeated one is the same. Runs in the queue's consumer, never in a
 * handler.
 */
import type { Stripe } from "stripe";
import * as v from "valibot";
import type { Consequence, ConsequenceTable } from "../outbox/consume.ts";
import { callStripe, idempotencyKey } from "../stripe/api.ts";
import { CallFailed } from "../stripe/call-failed.ts";

/** As `booking` writes it. */
const InvoicePaymentBooked = v.object({
  invoice_id: v.string(),
  amount: v.pipe(v.number(), v.safeInteger()),
  currency: v.nullable(v.string()),
  customer_id: v.nullable(v.string()),
  event_id: v.string(),
});

export const paymentConsequences: ConsequenceTable = {
  InvoicePaymentBooked: ({ payload }, stripe) =>
    updateCustomer(stripe, v.parse(InvoicePaymentBooked, payload)),
};

/**
 * The customer's metadata tell a payment that was booked. Of two at about the same time, either may
 * be told last: messages come in any order, and a call that is repeated comes late.
 */
function updateCustomer(
  stripe: () => Stripe,
  payment: v.InferOutput<typeof InvoicePaymentBooked>,
): Consequence | null {
  const { customer_id, invoice_id, amount, currency, event_id } = payment;
  if (customer_id === null) return null;
  const key = idempotencyKey(event_id, "update-customer-metadata");
  const metadata = {
    last_paid_invoice: invoice_id,
    last_paid_amount: String(amount),
    last_paid_currency: currency ?? "",
  };
  return {
    key,
    call: async () => {
      const updated = await callStripe(() =>
        stripe().customers.update(customer_id, { metadata }, { idempotencyKey: key }),
      );
      if (updated.id !== customer_id) throw new CallFailed("uncertain", "UnexpectedAnswer");
      return "updated";
    },
  };
}

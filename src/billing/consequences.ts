/**
 * What follows outside from what was booked: one call for each kind of message, made from the
 * message alone, so that a repeated one is the same. Runs in the queue's consumer, never in a
 * handler.
 */
import type { Stripe } from "stripe";
import * as v from "valibot";
import type { Consequence, FindConsequence } from "../outbox/consume.ts";
import { callStripe, idempotencyKey } from "../stripe/api.ts";

/** As `bookPayment` writes it. */
const InvoicePaymentBooked = v.object({
  invoice_id: v.string(),
  amount: v.pipe(v.number(), v.safeInteger()),
  currency: v.nullable(v.string()),
  customer_id: v.nullable(v.string()),
  event_id: v.string(),
});

/** An event's id has up to 255 characters, and so has a key: the longest ones leave no room. */
export function consequencesAt(stripe: Stripe): FindConsequence {
  return ({ event_type, payload }) =>
    event_type === "InvoicePaymentBooked"
      ? updateCustomer(stripe, v.parse(InvoicePaymentBooked, payload))
      : null;
}

/** The customer's metadata tell the last payment that was booked. */
function updateCustomer(
  stripe: Stripe,
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
      await callStripe(() =>
        stripe.customers.update(customer_id, { metadata }, { idempotencyKey: key }),
      );
      return "updated";
    },
  };
}

/** What follows outside from a refund that was booked: one call, made from the message alone. */
import * as v from "valibot";
import type { ConsequenceTable } from "../../../src/outbox/consume.ts";
import { callStripe, idempotencyKey } from "../../../src/stripe/api.ts";
import { CallFailed } from "../../../src/stripe/call-failed.ts";

/** As `bookRefund` writes it. */
const RefundBooked = v.object({
  charge_id: v.string(),
  amount: v.pipe(v.number(), v.safeInteger()),
  currency: v.string(),
  customer_id: v.nullable(v.string()),
  event_id: v.string(),
  account: v.nullable(v.string()),
});

/** Of two at about the same time, either may be told last: messages come in any order. */
export const refundConsequences: ConsequenceTable = {
  RefundBooked: ({ payload }, stripe) => {
    const refund = v.parse(RefundBooked, payload);
    const { customer_id: customer, account } = refund;
    if (customer === null) return null;
    const key = idempotencyKey(refund.event_id, "tell-customer-of-refund");
    const metadata = {
      last_refunded_charge: refund.charge_id,
      last_refunded_amount: String(refund.amount),
      last_refunded_currency: refund.currency,
    };
    const ofAccount = account === null ? {} : { stripeAccount: account };
    const options = { idempotencyKey: key, ...ofAccount };
    return {
      key,
      call: async () => {
        const update = () => stripe().customers.update(customer, { metadata }, options);
        const updated = await callStripe(update);
        if (updated.id !== customer) throw new CallFailed("uncertain", "UnexpectedAnswer");
        return "updated";
      },
    };
  },
};

/**
 * What Stripe says of an invoice now, told as the event that was missed: the handlers then do what
 * they would have done, and no more.
 */
import type { InvoiceStatus } from "./lifecycle.ts";

/** The event that says of an invoice what its status says. Drafts are owed by nobody. */
const TOLD_BY: Readonly<Record<Exclude<InvoiceStatus, "draft">, string>> = {
  open: "invoice.finalized",
  uncollectible: "invoice.marked_uncollectible",
  paid: "invoice.paid",
  void: "invoice.voided",
};

/**
 * The same snapshot makes the same event, so that a repair in vain is not recorded twice.
 *
 * @param invoice as Stripe's API answered it.
 * @returns the event's JSON; null when there is nothing to tell.
 */
export function toldAsEvent(
  invoice: Readonly<Record<string, unknown>>,
): { readonly type: string; readonly json: string } | null {
  const { id, status, livemode, amount_paid } = invoice;
  if (status !== "open" && status !== "uncollectible" && status !== "paid" && status !== "void") {
    return null;
  }
  const type = TOLD_BY[status];
  const event = {
    id: `repair_${String(id)}_${status}_${String(amount_paid)}`,
    object: "event",
    type,
    livemode: livemode === true,
    data: { object: invoice },
  };
  return { type, json: JSON.stringify(event) };
}

/** Events about refunds: one line each in a test. */
import { anEvent, type EventOptions, type Fields, freshId } from "../local/index.ts";

/** 10.00 EUR of a charge of 42.00 EUR were refunded, unless `fields` say otherwise. */
export function aRefund(
  fields: Fields<"charge.refunded"> = {},
  options: Partial<EventOptions> = {},
) {
  const charge = {
    id: freshId("ch"),
    object: "charge",
    amount: 4200,
    amount_refunded: 1000,
    currency: "eur",
    customer: "cus_test",
    refunded: false,
  };
  return anEvent("charge.refunded", { ...charge, ...fields }, options);
}

/** A credit note over 10.00 EUR of an open invoice, unless `fields` say otherwise. */
export function aCreditNote(
  fields: Fields<"credit_note.created"> = {},
  options: Partial<EventOptions> = {},
) {
  const note = {
    id: freshId("cn"),
    object: "credit_note",
    amount: 1000,
    currency: "eur",
    customer: "cus_test",
    invoice: freshId("in"),
    pre_payment_amount: 1000,
    post_payment_amount: 0,
    status: "issued",
    type: "pre_payment",
  };
  return anEvent("credit_note.created", { ...note, ...fields }, options);
}

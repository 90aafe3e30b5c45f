/**
 * Events with defaults, so that a test needs one line for each. Shapes are Stripe's, data is invented.
 * Pure; runs in Node and in workerd.
 */
import type { Stripe } from "stripe";
import {
  type EventOptions,
  invoiceEvent,
  type InvoiceEventType,
  type StripeEvent,
  stripeEvent,
  thinNotification,
} from "./events.ts";
import type { InvoiceFacts } from "./invoice-shapes.ts";

/** The object that an event of this type carries. */
type ObjectOf<Type extends Stripe.Event["type"]> = Extract<
  Stripe.Event,
  { type: Type }
>["data"]["object"];

/** Its fields, by Stripe's names; of any value, since what is wrong is worth a test, too. */
export type Fields<Type extends Stripe.Event["type"]> = {
  readonly [Name in keyof ObjectOf<Type>]?: unknown;
};

const DEFAULTS = {
  apiVersion: "2026-10-28.endive",
  livemode: false,
  created: 1_790_000_000,
} as const;

let made = 0;

/** An id that no other test uses. */
export function freshId(prefix: string): string {
  return `${prefix}_test${++made}${crypto.randomUUID().slice(0, 8)}`;
}

/** An event with an id of its own, about an object with these fields. */
export function anEvent<Type extends Stripe.Event["type"]>(
  type: Type,
  object: Fields<Type>,
  options: Partial<EventOptions> = {},
): StripeEvent {
  return stripeEvent(type, { ...object }, { id: freshId("evt"), ...DEFAULTS, ...options });
}

/** An event about an invoice: a paid one of 42.00 EUR, unless `facts` say otherwise. */
export function anInvoiceEvent(
  type: InvoiceEventType = "invoice.paid",
  facts: Partial<InvoiceFacts> = {},
  options: Partial<EventOptions> = {},
): StripeEvent {
  const total = facts.total ?? facts.amountPaid ?? 4200;
  const { apiVersion, livemode, created } = DEFAULTS;
  return invoiceEvent(
    type,
    {
      id: freshId("in"),
      status: "paid",
      customer: "cus_test",
      currency: "eur",
      total,
      amountPaid: total,
      livemode,
      created,
      changed: created,
      ...facts,
    },
    { id: freshId("evt"), apiVersion, ...options },
  );
}

/** A thin (v2) notification of our own account, with these fields over its own. */
export function aThinNotification(fields: object = {}): StripeEvent {
  return { ...thinNotification(freshId("evt"), DEFAULTS), ...fields };
}

/**
 * Stripe's Event objects, as its webhooks send them. Shapes are Stripe's, data is invented.
 * Pure; runs in Node and in workerd.
 */
import {
  type ApiVersion,
  type InvoiceFacts,
  type JsonObject,
  invoiceObject,
} from "./invoice-shapes.ts";

/** Every event type about an invoice that changes, or may change, the books. */
export const INVOICE_EVENT_TYPES = [
  "invoice.created",
  "invoice.finalized",
  "invoice.updated",
  "invoice.paid",
  "invoice.payment_succeeded",
  "invoice.payment_failed",
  "invoice.voided",
  "invoice.marked_uncollectible",
  "invoice.deleted",
] as const;
export type InvoiceEventType = (typeof INVOICE_EVENT_TYPES)[number];

export interface StripeEvent extends JsonObject {
  readonly id: string;
  readonly object: string;
  readonly type: string;
  readonly data?: { readonly object: JsonObject; readonly previous_attributes?: JsonObject };
  readonly livemode?: boolean;
  readonly account?: string;
}

export interface EventOptions {
  readonly id: string;
  readonly apiVersion: ApiVersion;
  readonly livemode: boolean;
  /** Whole seconds since 1970. */
  readonly created: number;
  /** The connected account, on events for a Connect endpoint. */
  readonly account?: string;
  readonly previousAttributes?: JsonObject;
}

/** An Event object around any object. */
export function stripeEvent(type: string, object: JsonObject, options: EventOptions): StripeEvent {
  const { id, apiVersion, livemode, created, account, previousAttributes } = options;
  return {
    id,
    object: "event",
    ...(account === undefined ? {} : { account }),
    api_version: apiVersion,
    created,
    data: {
      object,
      ...(previousAttributes ? { previous_attributes: previousAttributes } : {}),
    },
    livemode,
    pending_webhooks: 1,
    request: { id: null, idempotency_key: null },
    type,
  };
}

/** An event about an invoice, in the shape of the event's API version. */
export function invoiceEvent(
  type: InvoiceEventType,
  facts: InvoiceFacts,
  options: Omit<EventOptions, "livemode" | "created"> & Partial<EventOptions>,
): StripeEvent {
  return stripeEvent(type, invoiceObject(facts, options.apiVersion), {
    livemode: facts.livemode,
    created: facts.changed,
    ...options,
  });
}

/** A notification of the v2 API: it names an object and carries none. */
export function thinNotification(
  id: string,
  { created, livemode }: Pick<EventOptions, "created" | "livemode">,
): StripeEvent {
  return {
    id,
    object: "v2.core.event",
    context: null,
    created: new Date(created * 1000).toISOString(),
    livemode,
    reason: null,
    related_object: {
      id: "mtr_invented",
      type: "billing.meter",
      url: "/v1/billing/meters/mtr_invented",
    },
    type: "v1.billing.meter.no_meter_found",
  };
}

/** Objects of event types that no invoice handler wants. */
export const UNRELATED: Readonly<Record<string, (suffix: string) => JsonObject>> = {
  "customer.updated": (suffix) => ({
    id: `cus_${suffix}`,
    object: "customer",
    balance: 0,
    email: "saoirse@example.test",
    metadata: {},
  }),
  "charge.succeeded": (suffix) => ({
    id: `ch_${suffix}`,
    object: "charge",
    amount: 4200,
    currency: "eur",
    paid: true,
    status: "succeeded",
  }),
  "customer.subscription.updated": (suffix) => ({
    id: `sub_${suffix}`,
    object: "subscription",
    customer: `cus_${suffix}`,
    status: "active",
  }),
  "invoice_payment.paid": (suffix) => ({
    id: `inpay_${suffix}`,
    object: "invoice_payment",
    amount_paid: 4200,
    currency: "eur",
    invoice: `in_${suffix}`,
    status: "paid",
  }),
  // The preview of the next invoice exists nowhere yet and has no id.
  "invoice.upcoming": (suffix) => ({
    object: "invoice",
    amount_due: 4200,
    currency: "eur",
    customer: `cus_${suffix}`,
    lines: { object: "list", data: [], has_more: false, total_count: 0 },
  }),
};

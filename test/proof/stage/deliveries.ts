/** Events with ids of their own choice: they are the same in each run, so that runs compare. */
import {
  type InvoiceEventType,
  invoiceEvent,
  type StripeEvent,
  stripeEvent,
  thinNotification,
} from "../../local/events.ts";
import type { InvoiceStatus } from "../../local/invoice-shapes.ts";
import type { Delivery } from "./stage.ts";
import type { Failure } from "../workers/receiver.ts";

type EventType = "invoice.paid" | "invoice.voided" | "customer.updated";

export interface DeliveryOptions {
  /** Which event it is. */
  readonly n?: number;
  /** Which invoice it speaks of; by default, each event speaks of its own. */
  readonly invoice?: number;
  readonly worker?: string;
  readonly endpoint?: string;
  readonly type?: EventType;
  readonly failure?: Failure;
}

/** When everything happened, whole seconds since 1970. */
const AT = 1_790_000_000;

const STATUS: Readonly<Record<Extract<EventType, InvoiceEventType>, InvoiceStatus>> = {
  "invoice.paid": "paid",
  "invoice.voided": "void",
};

/** An event that books a payment at the endpoint that processes at once, unless told otherwise. */
export function delivery(options: DeliveryOptions = {}): Delivery {
  const { worker = "receiver", endpoint = "billing" } = options;
  return { worker, endpoint, event: eventOf(options) };
}

/** A thin notification, which names an object that Stripe can be asked for. */
export function thinDelivery(): Delivery {
  const event = {
    ...thinNotification("evt_proof1", { created: AT, livemode: false }),
    type: "v1.billing.meter.error_report_triggered",
  };
  return { worker: "receiver", endpoint: "later", event };
}

function eventOf({
  n = 1,
  invoice = n,
  type = "invoice.paid",
  failure,
}: DeliveryOptions): StripeEvent {
  const options = {
    id: `evt_proof${n}`,
    apiVersion: "2026-10-28.endive",
    livemode: false,
    created: AT,
  } as const;
  if (type === "customer.updated") return stripeEvent(type, { id: `cus_proof${n}` }, options);
  const status = STATUS[type];
  const facts = {
    id: `in_proof${invoice}`,
    status,
    customer: "cus_proof",
    currency: "eur",
    total: 4200,
    amountPaid: status === "paid" ? 4200 : 0,
    livemode: false,
    created: AT,
    changed: AT,
  } as const;
  const event = invoiceEvent(type, facts, options);
  if (failure === undefined) return event;
  const metadata = { proof: JSON.stringify(failure) };
  return { ...event, data: { object: { ...event.data?.object, metadata } } };
}

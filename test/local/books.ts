/**
 * The books that a stream of events must lead to, worked out from the rules alone and not with the
 * Worker's code. Deliveries and their order are not looked at: where the rules leave the end to
 * the order of arrival, every end they allow is listed. Pure; runs in Node and in workerd.
 */
import type { StripeEvent } from "./events.ts";
import { type ExpectedInvoice, invoiceEnds, isInvoiceEventType } from "./invoice-ends.ts";
import type { Sent } from "./stream.ts";

export type IgnoredReason = "test_id" | "thin" | "livemode" | "account" | "no_handler";

/** The row that the inbox must hold for one event at one endpoint. */
export interface ExpectedReceipt {
  readonly endpoint: string;
  readonly eventId: string;
  readonly eventType: string;
  readonly objectId: string | null;
  readonly outcome: "processed" | "ignored";
  readonly ignoredReason: IgnoredReason | null;
}

export interface ExpectedBooks {
  readonly receipts: readonly ExpectedReceipt[];
  /** The ends that each invoice may have come to; one, unless its events contradict each other. */
  readonly invoices: ReadonlyMap<string, readonly ExpectedInvoice[]>;
  /** Every invoice that was spoken of, also those that must not be in the books. */
  readonly mentioned: ReadonlySet<string>;
}

export interface Account {
  /** The endpoints' livemode rule; null accepts both. */
  readonly livemode: boolean | null;
  /** Whether an endpoint has a handler besides those of invoices; by default, none has. */
  readonly handles?: (sent: Sent<string>) => boolean;
}

/** The books that these events must lead to, each sent at least once, in whatever order. */
export function expectedBooks(stream: readonly Sent<string>[], account: Account): ExpectedBooks {
  const receipts = new Map<string, ExpectedReceipt>();
  const booked = new Map<string, Map<string, StripeEvent>>();
  const mentioned = new Set<string>();
  for (const sent of stream) {
    const { endpoint, event } = sent;
    const reason = reasonToIgnore(sent, account);
    const objectId = idIn(event.data?.object ?? event["related_object"]);
    receipts.set(`${endpoint} ${event.id}`, {
      endpoint,
      eventId: event.id,
      eventType: event.type,
      objectId,
      outcome: reason === null ? "processed" : "ignored",
      ignoredReason: reason,
    });
    if (objectId === null || !isInvoiceEventType(event.type)) continue;
    mentioned.add(objectId);
    if (reason !== null) continue;
    const events = booked.get(objectId) ?? new Map<string, StripeEvent>();
    booked.set(objectId, events.set(event.id, event));
  }
  const invoices = new Map<string, readonly ExpectedInvoice[]>();
  for (const [id, events] of booked) {
    const ends = invoiceEnds([...events.values()]);
    if (ends.length > 0) invoices.set(id, ends);
  }
  return { receipts: [...receipts.values()], invoices, mentioned };
}

/**
 * Why an endpoint has nothing to do with an event; the first reason wins. Null: it has.
 * `connect` hears of connected accounts; every other hears of our own, and handles invoices.
 */
function reasonToIgnore(
  sent: Sent<string>,
  { livemode, handles = () => false }: Account,
): IgnoredReason | null {
  const { endpoint, event } = sent;
  if (/^evt_0{14,}$|_0{14}$/.test(event.id)) return "test_id";
  if (event.object === "v2.core.event" && !handles(sent)) return "thin";
  if (livemode !== null && event.livemode !== livemode) return "livemode";
  const connected = event.account !== undefined && event.account !== "";
  if (connected !== (endpoint === "connect")) return "account";
  const isOfInvoices = endpoint !== "connect" && isInvoiceEventType(event.type);
  return isOfInvoices || handles(sent) ? null : "no_handler";
}

/** Of the object that it holds; of a thin notification, which only names one, the named one's. */
function idIn(object: unknown): string | null {
  if (typeof object !== "object" || object === null || !("id" in object)) return null;
  return typeof object.id === "string" ? object.id : null;
}

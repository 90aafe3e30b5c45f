/**
 * What the events about one invoice prove, whatever order they arrived in: the highest state any
 * of them names, the payment that was booked, and the contradictions a person must look at.
 * Paid and void are both final; where events prove both, the first to arrive wins, so that there
 * are two possible ends. Pure; runs in Node and in workerd.
 */
import { INVOICE_EVENT_TYPES, type InvoiceEventType, type StripeEvent } from "./events.ts";
import type { InvoiceStatus } from "./invoice-shapes.ts";

/** The entry and its message; any of the events that tell of the same sum may have booked it. */
export interface ExpectedEntry {
  readonly amount: number;
  readonly currency: string | null;
  readonly eventIds: readonly string[];
}

export type ExpectedDiscrepancy = "paid_after_void" | "void_after_paid" | "payment_mismatch";

/** One end that an invoice may have come to. */
export interface ExpectedInvoice {
  /** One, or the two that a change without a status leaves open. */
  readonly statuses: readonly InvoiceStatus[];
  /** One of these sums must be booked; none when empty. */
  readonly entries: readonly ExpectedEntry[];
  readonly discrepancies: readonly ExpectedDiscrepancy[];
  /** The customers and the currencies that the events name; null when none does. */
  readonly customers: readonly (string | null)[];
  readonly currencies: readonly (string | null)[];
}

/** What one event says of its invoice. */
interface Word {
  readonly eventId: string;
  readonly type: InvoiceEventType;
  /** Null: it says nothing of the state, or only that the invoice exists. */
  readonly status: InvoiceStatus | null;
  readonly pays: { readonly amount: number; readonly currency: string | null } | null;
  readonly customer: string | null;
  readonly currency: string | null;
}

const RANK: Readonly<Record<InvoiceStatus, number>> = {
  draft: 0,
  open: 1,
  uncollectible: 2,
  paid: 3,
  void: 3,
};

const STATUSES = ["draft", "open", "uncollectible", "paid", "void"] as const;

/** The state that a type names where the object has no status, as before API version 2018-11-08. */
const NAMED_BY_TYPE: Readonly<Record<InvoiceEventType, InvoiceStatus | null>> = {
  "invoice.created": "draft",
  "invoice.finalized": "open",
  "invoice.updated": null,
  "invoice.paid": "paid",
  "invoice.payment_succeeded": "paid",
  "invoice.payment_failed": "open",
  "invoice.voided": "void",
  "invoice.marked_uncollectible": "uncollectible",
  "invoice.deleted": null,
};

export function isInvoiceEventType(type: string): type is InvoiceEventType {
  return INVOICE_EVENT_TYPES.some((known) => known === type);
}

/** Every end that the rules allow; none when no event leaves a row. Each event once. */
export function invoiceEnds(events: readonly StripeEvent[]): readonly ExpectedInvoice[] {
  // The deletion of a draft is read for nothing and leaves the row as it is.
  const words = events.map(word).filter(({ type }) => type !== "invoice.deleted");
  if (words.length === 0) return [];
  const known = {
    customers: orNull(words.map(({ customer }) => customer)),
    currencies: orNull(words.map(({ currency }) => currency)),
  };
  const paid = words.some(({ status }) => status === "paid");
  const voided = words.some(({ status }) => status === "void");
  const ends: ExpectedInvoice[] = [];
  if (paid) ends.push(...endsAsPaid(words).map((end) => ({ ...known, ...end })));
  if (voided) ends.push({ ...known, ...endAsVoid(words) });
  if (ends.length > 0) return ends;
  return [{ ...known, statuses: openStatuses(words), entries: [], discrepancies: [] }];
}

type End = Pick<ExpectedInvoice, "statuses" | "entries" | "discrepancies">;

/** It was paid before any event could void it. */
function endsAsPaid(words: readonly Word[]): readonly End[] {
  const entries = new Map<string, ExpectedEntry>();
  for (const { eventId, pays } of words) {
    if (pays === null || pays.amount === 0) continue;
    const sum = `${pays.amount} ${pays.currency}`;
    const eventIds = [...(entries.get(sum)?.eventIds ?? []), eventId];
    entries.set(sum, { ...pays, eventIds });
  }
  const discrepancies: ExpectedDiscrepancy[] = [];
  if (words.some(({ type, status }) => type === "invoice.voided" && status === "void")) {
    discrepancies.push("void_after_paid");
  }
  const end = { statuses: ["paid" as const], entries: [...entries.values()], discrepancies };
  const mismatched = { ...end, discrepancies: [...discrepancies, "payment_mismatch" as const] };
  if (entries.size > 1) return [mismatched];
  // A payment of nothing contradicts the sum that was booked before it, and none that comes later.
  const paidNothing = words.some(({ pays }) => pays?.amount === 0);
  return entries.size === 1 && paidNothing ? [end, mismatched] : [end];
}

/** It was void before any event could pay it: money that comes now is a contradiction. */
function endAsVoid(words: readonly Word[]): End {
  const discrepancies: ExpectedDiscrepancy[] = [];
  if (words.some(({ pays }) => pays !== null)) discrepancies.push("paid_after_void");
  return { statuses: ["void"], entries: [], discrepancies };
}

function openStatuses(words: readonly Word[]): InvoiceStatus[] {
  const named = words.flatMap(({ status }) => (status === null ? [] : [status]));
  const highest = named.toSorted((a, b) => RANK[b] - RANK[a])[0] ?? "open";
  // A change without a status opens an invoice that it is the first to speak of.
  const mayOpen = words.some(({ status }) => status === null);
  return highest === "draft" && mayOpen ? ["draft", "open"] : [highest];
}

function word(event: StripeEvent): Word {
  const { id, type } = event;
  if (!isInvoiceEventType(type)) throw new Error(`Bug! ${type} is not about an invoice`);
  const object = event.data?.object ?? {};
  const told = object["status"] ?? NAMED_BY_TYPE[type];
  const status = STATUSES.find((known) => known === told) ?? null;
  const currency = currencyCode(object["currency"]);
  const tellsPayment = type === "invoice.paid" || type === "invoice.payment_succeeded";
  return {
    eventId: id,
    type,
    status,
    pays:
      tellsPayment && status === "paid"
        ? { amount: Number(object["amount_paid"]), currency }
        : null,
    customer: customerId(object["customer"]),
    currency,
  };
}

function customerId(customer: unknown): string | null {
  if (typeof customer === "string") return customer;
  if (typeof customer !== "object" || customer === null || !("id" in customer)) return null;
  return typeof customer.id === "string" ? customer.id : null;
}

function currencyCode(currency: unknown): string | null {
  return typeof currency === "string" && /^[a-z]{3}$/i.test(currency)
    ? currency.toLowerCase()
    : null;
}

function orNull(values: readonly (string | null)[]): (string | null)[] {
  const known = new Set(values.filter((value) => value !== null));
  return known.size > 0 ? [...known] : [null];
}

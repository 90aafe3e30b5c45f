/** Pure: an invoice as Stripe has it and as it is booked here, and how the two differ. */
import * as v from "valibot";
import type { DiscrepancyKind } from "../reconcile/discrepancies.ts";
import { INVOICE_STATUSES, type InvoiceStatus, isStatus, transition } from "./lifecycle.ts";

export interface InvoiceThere {
  readonly id: string;
  readonly status: InvoiceStatus | null;
  readonly amountPaid: number;
  readonly currency: string | null;
  /** When it last changed its status, in seconds since 1970. */
  readonly changedAt: number;
}

export interface InvoiceHere {
  readonly id: string;
  readonly status: InvoiceStatus;
  readonly currency: string | null;
  readonly amountPaid: number;
  /** What was booked for it; null: nothing. */
  readonly entry: { readonly amount: number; readonly currency: string | null } | null;
  /** In seconds since 1970. */
  readonly changedAt: number;
}

export interface Difference {
  readonly kind: DiscrepancyKind;
  readonly objectId: string;
  /** Statuses, amounts and currencies of both sides. */
  readonly detail: Readonly<Record<string, string | number | null>>;
  /** Whether what Stripe says may simply be done here, too: it leads on from where we are. */
  readonly repairable: boolean;
}

const Seconds = v.fallback(v.pipe(v.number(), v.safeInteger()), 0);
const Transitions = v.fallback(v.record(v.string(), v.nullable(v.number())), {});
const AtStripe = v.object({
  id: v.string(),
  status: v.fallback(v.nullable(v.picklist(INVOICE_STATUSES)), null),
  amount_paid: v.fallback(v.pipe(v.number(), v.safeInteger()), 0),
  currency: v.fallback(v.nullable(v.pipe(v.string(), v.toLowerCase())), null),
  created: Seconds,
  status_transitions: Transitions,
});

/** What is not as we know it is not compared. */
export function readInvoiceThere(object: { readonly id: string }): InvoiceThere {
  const { id, status, amount_paid, currency, created, status_transitions } = v.parse(
    AtStripe,
    object,
  );
  const changes = Object.values(status_transitions).map(Number);
  return {
    id,
    status,
    amountPaid: amount_paid,
    currency,
    changedAt: Math.max(created, ...changes),
  };
}

/**
 * The one difference that says most: what follows from another is not named too. Null: they agree,
 * as far as our events can tell. Drafts are owed by nobody: one that never was here, or was deleted
 * there, is no difference.
 *
 * @param there null: Stripe has no such invoice.
 * @param here null: nor have we.
 */
export function compareInvoice(
  there: InvoiceThere | null,
  here: InvoiceHere | null,
): Difference | null {
  if (there === null) {
    if (here === null || (here.status === "draft" && here.entry === null)) return null;
    return { kind: "missing_at_stripe", repairable: false, ...about(here.id, there, here) };
  }
  const found = about(there.id, there, here);
  const { status } = there;
  const isOwed = status !== null && status !== "draft";
  if (here === null) return isOwed ? { kind: "missing_here", repairable: true, ...found } : null;
  const next = status === null ? "stale" : transition(here.status, status);
  if (!isStatus(next) && next !== "stale") return { kind: next, repairable: false, ...found };
  if (status === "paid") {
    if (here.entry === null && there.amountPaid > 0) {
      return { kind: "missing_here", repairable: true, ...found };
    }
    const row = { amount: here.amountPaid, currency: here.currency };
    const agrees =
      here.entry === null ||
      (isSameMoney(there, here.entry) && (here.status !== "paid" || isSameMoney(there, row)));
    if (!agrees) return { kind: "payment_mismatch", repairable: false, ...found };
  }
  if (!isSameCurrency(there.currency, here.currency)) {
    return { kind: "payment_mismatch", repairable: false, ...found };
  }
  if (status === null || status === here.status) return null;
  return { kind: "status_differs", repairable: isStatus(next), ...found };
}

function isSameMoney(
  { amountPaid, currency }: InvoiceThere,
  money: NonNullable<InvoiceHere["entry"]>,
): boolean {
  return amountPaid === money.amount && isSameCurrency(currency, money.currency);
}

/** Unknown currencies agree with any. */
function isSameCurrency(one: string | null, other: string | null): boolean {
  return one === null || other === null || one === other;
}

function about(objectId: string, there: InvoiceThere | null, here: InvoiceHere | null) {
  return {
    objectId,
    detail: {
      status: here?.status ?? null,
      stripe_status: there?.status ?? null,
      amount: here?.amountPaid ?? null,
      booked_amount: here?.entry?.amount ?? null,
      stripe_amount: there?.amountPaid ?? null,
      booked_currency: here?.entry?.currency ?? here?.currency ?? null,
      stripe_currency: there?.currency ?? null,
    },
  };
}

/** The events that are raced with, all of one invoice, and the states in which one finds them. */
import type { Connection } from "../../../src/db/connect.ts";
import {
  type InvoiceEventType,
  invoiceEvent,
  type StripeEvent,
  stripeEvent,
} from "../../local/events.ts";
import type { InvoiceStatus } from "../../local/invoice-shapes.ts";
import { claimOf, MAX_ATTEMPTS, storer, syncDelivery } from "./racers.ts";
import type { Failure } from "../workers/effect.ts";

/** What a race begins with is put in place through this, undisturbed. */
export interface Scene {
  readonly db: Connection;
  readonly rows: (text: string, values?: unknown[]) => Promise<Record<string, unknown>[]>;
}

export type Before = (scene: Scene) => Promise<unknown>;

interface EventOptions {
  readonly invoice?: string;
  readonly status?: InvoiceStatus;
  readonly amount?: number;
  readonly failure?: Failure;
}

/** When everything happened, whole seconds since 1970. */
const AT = 1_790_000_000;
const SHAPE = { apiVersion: "2026-10-28.endive", livemode: false, created: AT } as const;

export const PAID = raceEvent("evt_paid", "invoice.paid");
export const PAID_AGAIN = raceEvent("evt_paid_again", "invoice.paid");
export const PAID_MORE = raceEvent("evt_paid_more", "invoice.payment_succeeded", { amount: 9900 });
export const UPDATED = raceEvent("evt_updated", "invoice.updated");
export const VOIDED = raceEvent("evt_voided", "invoice.voided", { status: "void" });
export const FINALIZED = raceEvent("evt_finalized", "invoice.finalized", { status: "open" });
export const OF_ANOTHER = raceEvent("evt_of_another", "invoice.finalized", {
  invoice: "in_another",
  status: "open",
});
export const FAILS = raceEvent("evt_fails", "invoice.finalized", {
  status: "open",
  failure: { how: "throw", attempts: 1 },
});
/** The same event, where nothing fails. */
export const WORKS = raceEvent("evt_fails", "invoice.finalized", { status: "open" });
export const REFUSED = raceEvent("evt_refused", "invoice.finalized", {
  status: "open",
  failure: { how: "statement", attempts: 1 },
});
export const NEVER_WORKS = raceEvent("evt_never_works", "invoice.finalized", {
  status: "open",
  failure: { how: "permanent" },
});
/** No handler wants it. */
export const UNWANTED = stripeEvent(
  "customer.updated",
  { id: "cus_race", object: "customer" },
  { ...SHAPE, id: "evt_unwanted" },
);

/** As its first claim holds it. */
export const CLAIM = claimOf(PAID, 1);
export const FAILING_CLAIM = claimOf(FAILS, 1);

/** Columns of a waiting event: claimed under a lease that is not over, or is, or crashed often. */
export const CLAIMED = "attempts = 1, fence = 1, available_at = now() + interval '1 day'";
export const OVERDUE = "attempts = 1, fence = 1, available_at = now() - interval '1 hour'";
export const CLAIMED_TWICE = "attempts = 2, fence = 2, available_at = now() + interval '1 day'";
export const CRASHED = `attempts = ${MAX_ATTEMPTS}, fence = ${MAX_ATTEMPTS},
  available_at = now() - interval '1 hour'`;
export const PARKED = `attempts = ${MAX_ATTEMPTS}, fence = ${MAX_ATTEMPTS} + 1, parked_at = now(),
  last_error = 'Crashed'`;

/** Columns of a settled one. */
export const OLD = "processed_at = now() - interval '100 days'";
export const TOMBSTONE = `${OLD}, payload = null`;
export const IGNORED = `${OLD}, outcome = 'ignored', ignored_reason = 'no_handler'`;

/** An event that waits, with these columns set. */
export function stored(event: StripeEvent, columns?: string): Before {
  return async ({ db, rows }) => {
    await storer(event).run(db, () => undefined);
    if (columns) await rows(`update webhook_inbox set ${columns} where event_id = $1`, [event.id]);
  };
}

/** An event that was processed, with these columns set. */
export function settled(event: StripeEvent, columns: string): Before {
  return async ({ db, rows }) => {
    await syncDelivery(event).run(db, () => undefined);
    await rows(`update webhook_inbox set ${columns} where event_id = $1`, [event.id]);
  };
}

export function inTurn(...all: readonly Before[]): Before {
  return async (scene) => {
    for (const before of all) await before(scene);
  };
}

function raceEvent(
  id: string,
  type: InvoiceEventType,
  { invoice = "in_race", status = "paid", amount = 4200, failure }: EventOptions = {},
): StripeEvent {
  const facts = {
    id: invoice,
    status,
    customer: "cus_race",
    currency: "eur",
    total: amount,
    amountPaid: status === "paid" ? amount : 0,
    livemode: false,
    created: AT,
    changed: AT,
  } as const;
  const event = invoiceEvent(type, facts, { ...SHAPE, id });
  if (failure === undefined) return event;
  const metadata = { proof: JSON.stringify(failure) };
  return { ...event, data: { object: { ...event.data?.object, metadata } } };
}

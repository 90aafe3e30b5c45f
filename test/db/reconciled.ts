/** A receiver, and the Stripe that it asks what it has missed, for tests of reconciliation. */
import { onTestFinished } from "vitest";
import { invoiceHandlers } from "../../src/billing/handlers.ts";
import type { Endpoint, Endpoints } from "../../src/endpoints.ts";
import { type ApiOptions, type FakeStripeApi, startStripeApi } from "../local/stripe-api.ts";
import type { EventOptions, InvoiceEventType, StripeEvent } from "../local/events.ts";
import type { InvoiceFacts } from "../local/invoice-shapes.ts";
import { anInvoiceEvent, openTestbed, type Testbed } from "../worker/testbed.ts";

export interface Reconciled {
  readonly inbox: Testbed;
  readonly api: FakeStripeApi;
  /** Something happened at Stripe, so long ago; nobody delivers it. */
  readonly happened: (ago: Ago, ...events: StripeEvent[]) => void;
  /** Ticks until nothing is due and no sweep is under way. */
  readonly settle: () => Promise<void>;
}

export interface Ago {
  readonly minutes: number;
}

export const BILLING: Endpoint = {
  secrets: "STRIPE_WEBHOOK_SECRET",
  accounts: "own",
  handlers: invoiceHandlers,
};

/** Endpoints of our own account, and of those connected to it, that both follow invoices. */
export const BOTH: Endpoints = { billing: BILLING, connect: { ...BILLING, accounts: "connected" } };

export const HOUR = { minutes: 60 } as const;
const MOST_TICKS = 20;

/** Opened within a test, and closed when that is over. */
export async function openReconciled(
  options: {
    readonly endpoints?: Endpoints;
    readonly env?: Readonly<Record<string, unknown>>;
    readonly api?: ApiOptions;
  } = {},
): Promise<Reconciled> {
  const api = await startStripeApi(options.api);
  onTestFinished(api.close);
  const env = { STRIPE_API_KEY: "sk_test_made_up", STRIPE_API_URL: api.url, ...options.env };
  const inbox = await openTestbed({ ...options, env });
  const isUnsettled = async (): Promise<boolean> => {
    const [row] = await inbox.rows(`select exists (select from webhook_inbox
        where processed_at is null and parked_at is null)
      or exists (select from sweep_runs where completed_at is null) as unsettled`);
    return row?.["unsettled"] === true;
  };
  return {
    inbox,
    api,
    happened: ({ minutes }, ...events) => {
      const created = Math.floor(Date.now() / 1_000) - minutes * 60;
      for (const event of events) api.lists.addEvent({ ...event, created });
    },
    settle: async () => {
      for (let ticks = 0; ticks < MOST_TICKS; ticks++) {
        await inbox.tick();
        if (!(await isUnsettled())) return;
      }
      throw new Error("There is no end to it.");
    },
  };
}

/** So many payments of an invoice each. */
export function somePayments(
  number: number,
  facts: Partial<InvoiceFacts> = {},
  options: Partial<EventOptions> = {},
): readonly StripeEvent[] {
  return Array.from({ length: number }, () => aPayment("invoice.paid", facts, options));
}

export const aPayment = (
  type: InvoiceEventType = "invoice.paid",
  facts: Partial<InvoiceFacts> = {},
  options: Partial<EventOptions> = {},
): StripeEvent => anInvoiceEvent(type, facts, options);

export async function sweepRows({ inbox }: Pick<Reconciled, "inbox">) {
  return inbox.rows(`select account, pages, events, missing, last_error, failures,
    completed_at is not null as complete from sweep_runs order by id`);
}

/** As if so much time had passed since everything that is on record of sweeps. */
export async function sweepsAge({ inbox }: Pick<Reconciled, "inbox">, ago: string): Promise<void> {
  await inbox.rows(`update sweep_runs set started_at = started_at - interval '${ago}',
    available_at = available_at - interval '${ago}',
    window_from = window_from - interval '${ago}', window_to = window_to - interval '${ago}',
    completed_at = completed_at - interval '${ago}'`);
}

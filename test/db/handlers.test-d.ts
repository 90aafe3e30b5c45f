/**
 * What the compiler refuses, so that no test has to: this file is compiled by `npm run check` and
 * never run. Each `@ts-expect-error` is a claim; the check fails when the line below it compiles.
 */
import type { NodePgDatabase } from "drizzle-orm/node-postgres";
import type { Client } from "pg";
import type { Stripe } from "stripe";
import { invoiceHandlers } from "../../src/billing/handlers.ts";
import type { Tx } from "../../src/db/connect.ts";
import { invoices } from "../../src/db/schema.ts";
import type { Endpoints } from "../../src/endpoints.ts";
import {
  askHandler,
  type Handler,
  type HandlerTable,
  type ThinHandlerTable,
} from "../../src/inbox/handler.ts";
import { judge, type EndpointRules } from "../../src/inbox/rules.ts";
import type { StripeEvent, VerifiedEvent } from "../../src/stripe/verify.ts";

interface Given {
  readonly tx: Tx;
  readonly verified: VerifiedEvent;
  readonly paid: StripeEvent<"invoice.paid">;
  readonly endpoint: EndpointRules;
  /** As Stripe's API, or a test, gives one: of the right shape, and proved by nobody. */
  readonly unproved: Stripe.InvoicePaidEvent;
  readonly client: Client;
  readonly db: NodePgDatabase;
}

export const narrowed: HandlerTable = {
  "invoice.paid": (event) => {
    const type: "invoice.paid" = event.type;
    const invoice: Stripe.Invoice = event.data.object;
    // @ts-expect-error -- An invoice is no charge.
    const charge: Stripe.Charge = event.data.object;
    // @ts-expect-error -- This handler is never asked about another type.
    const other: "invoice.voided" = event.type;
    void [type, invoice, charge, other];
  },
  "charge.refunded": (event) => {
    const charge: Stripe.Charge = event.data.object;
    void charge;
  },
};

export const misspelt: HandlerTable = {
  // @ts-expect-error -- Stripe has no such event: a handler under it would never be asked.
  "invoice.payed": () => [],
};

export const misplaced: HandlerTable = {
  // @ts-expect-error -- A handler of invoices cannot stand under an event about charges.
  "charge.refunded": invoiceHandlers["invoice.paid"],
};

export const thin: ThinHandlerTable = {
  "v1.billing.meter.error_report_triggered": {
    fetch: "related_object",
    handle: (event, meter) => {
      const context: string | null | undefined = event.context;
      const name: string | undefined = meter?.event_name;
      // @ts-expect-error -- Stripe may know it no more.
      const unasked: string = meter.event_name;
      // @ts-expect-error -- What can be fetched was fetched, and a transaction is open now.
      const more: unknown = event.fetchRelatedObject;
      void [context, name, unasked, more];
    },
  },
  "v1.billing.meter.no_meter_found": {
    fetch: "event",
    handle: (_, event) => {
      const summary: string | undefined = event?.data.developer_message_summary;
      // @ts-expect-error -- It was asked for its data, and names no object.
      const meter: unknown = event?.related_object;
      void [summary, meter];
    },
  },
  // @ts-expect-error -- A snapshot's type is no notification's.
  "invoice.paid": { fetch: "event", handle: () => [] },
};

export const misspeltAtEndpoint: Endpoints = {
  billing: {
    secrets: "STRIPE_WEBHOOK_SECRET",
    accounts: "own",
    // @ts-expect-error -- Nor in the table that a user edits.
    handlers: { "invoice.payed": () => [] },
  },
};

const handler: Handler = () => [];

export function onlyVerifiedEventsReachAHandler(given: Given): unknown[] {
  const { tx, verified, paid, unproved, endpoint } = given;
  const handMade = { id: "evt_1", type: "invoice.paid", data: { object: { id: "in_1" } } };
  const lookAlike = {
    id: "evt_1",
    type: "invoice.paid",
    thin: false,
    livemode: false,
    connected: false,
    objectId: "in_1",
    payload: paid,
    json: "{}",
    altered: false,
  };
  return [
    invoiceHandlers["invoice.paid"](paid, tx),
    // @ts-expect-error -- Made by hand.
    invoiceHandlers["invoice.paid"](handMade, tx),
    // @ts-expect-error -- Stripe's own type, and no signature was checked.
    invoiceHandlers["invoice.paid"](unproved, tx),
    // @ts-expect-error -- Verified, but for another handler.
    invoiceHandlers["invoice.voided"](paid, tx),
    askHandler(handler, verified, tx, 1_000),
    // @ts-expect-error -- It has every field that can be seen, and lacks the mark of the verifier.
    askHandler(handler, lookAlike, tx, 1_000),
    judge(endpoint, verified),
    // @ts-expect-error -- Nor is one let into an endpoint's rules.
    judge(endpoint, lookAlike),
  ];
}

export function onlyATransactionIsATransaction({ tx, paid, db, client }: Given): unknown[] {
  const handle = invoiceHandlers["invoice.paid"];
  return [
    handle(paid, tx),
    // @ts-expect-error -- A transaction() of Drizzle's plain client would commit ours.
    handle(paid, db),
    // @ts-expect-error -- The driver's client knows nothing of our transaction.
    handle(paid, client),
  ];
}

export const answers: Record<string, Handler<StripeEvent<"invoice.paid">>> = {
  nothing: () => undefined,
  writes: (_event, tx) => [tx.update(invoices).set({ status: "paid" })],
  later: async () => [],
  // @ts-expect-error -- Not a list: the write would be taken for an answer and lost.
  write: (_event, tx) => tx.update(invoices).set({ status: "paid" }),
  // @ts-expect-error -- Text is no write.
  text: () => ["update invoices set status = 'paid'"],
  // @ts-expect-error -- A write that was awaited is its result.
  awaited: async (_event, tx) => [await tx.update(invoices).set({ status: "paid" })],
};

/**
 * What the broken receivers share: an event's statements, each of which is right. What is wrong
 * with a receiver is when it sends them, or what it makes of the answers. None verifies a signature:
 * the proof's own events reach them.
 */
import type { Client } from "pg";

export interface PaidEvent {
  readonly id: string;
  readonly type: string;
  readonly data: { readonly object: PaidInvoice };
}

interface PaidInvoice {
  readonly id: string;
  readonly customer: string;
  readonly currency: string;
  readonly amount_paid: number;
  /** As the product under proof reads it; here, that it is there is enough. */
  readonly metadata: { readonly proof?: string };
}

export interface Statement {
  readonly text: string;
  readonly values: unknown[];
}

/** Receives one event; what it throws is answered with a 500, so that Stripe comes back. */
export type Receive = (event: PaidEvent, client: Client) => Promise<"processed" | "duplicate">;

/** A row when the event is known. */
export function lookUp({ id }: PaidEvent): Statement {
  return { text: "select from webhook_inbox where event_id = $1", values: [id] };
}

/** Inserts the event as settled; no row when it was settled before. */
export function mark(event: PaidEvent): Statement {
  return {
    text: `insert into webhook_inbox (endpoint, event_id, event_type, object_id, payload, attempts,
        processed_at, outcome)
      values ('billing', $1, $2, $3, $4, 1, now(), 'processed')
      on conflict (provider, endpoint, event_id) do nothing`,
    values: [event.id, event.type, event.data.object.id, JSON.stringify(event)],
  };
}

/** The invoice, its ledger entry, the message to the world, and a row that no key protects. */
export function work(event: PaidEvent): Statement[] {
  const { id, customer, currency, amount_paid: amount } = event.data.object;
  return [
    {
      text: `insert into invoices (id, customer_id, status, currency, amount_paid, paid_at)
        values ($1, $2, 'paid', $3, $4, now()) on conflict (id) do nothing`,
      values: [id, customer, currency, amount],
    },
    {
      text: `insert into ledger_entries (invoice_id, kind, amount, currency, event_id)
        values ($1, 'payment', $2, $3, $4) on conflict (invoice_id, kind) do nothing`,
      values: [id, amount, currency, event.id],
    },
    {
      text: `insert into outbox (aggregate_type, aggregate_id, event_type, payload)
        values ('Invoice', $1, 'InvoicePaymentBooked', $2)`,
      values: [id, message(event)],
    },
    { text: "insert into effects (event_id) values ($1)", values: [event.id] },
  ];
}

/** JSON knows no bigint: such a message is one that the driver refuses to send. */
function message({ id: event_id, data: { object } }: PaidEvent): object {
  const { id: invoice_id, customer: customer_id, currency, amount_paid, metadata } = object;
  const amount = metadata.proof === undefined ? amount_paid : BigInt(amount_paid);
  return { invoice_id, customer_id, currency, amount, event_id };
}

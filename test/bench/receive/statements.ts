/**
 * What the contestants write for one paid invoice, into the product's own tables: the effects are
 * the product's, the SQL is what one writes who knows Postgres. Not imitated: the order of events,
 * contradictions, mismatches, retries.
 */
import type { Stripe } from "stripe";

export interface Statement {
  readonly text: string;
  readonly values: (string | number)[];
}

/** What of an event is written. */
export interface Paid {
  readonly eventId: string;
  readonly type: string;
  readonly invoiceId: string;
  readonly customerId: string;
  readonly currency: string;
  readonly amount: number;
  /** The event as it was signed. */
  readonly json: string;
}

/** @throws when it is no paid invoice. */
export function readPaid(event: Stripe.Event, json: string): Paid {
  if (event.type !== "invoice.paid") throw new Error(`No contestant knows ${event.type}.`);
  const { id, customer, currency, amount_paid: amount } = event.data.object;
  if (!id || typeof customer !== "string") throw new Error("The invoice is not one of ours.");
  return {
    eventId: event.id,
    type: event.type,
    invoiceId: id,
    customerId: customer,
    currency,
    amount,
    json,
  };
}

/** The textbook's: each is awaited, between BEGIN and COMMIT, once the look-up found nothing. */
export const lookUp = ({ eventId }: Paid): Statement => ({
  text: "select from webhook_inbox where provider = 'stripe' and endpoint = 'billing' and event_id = $1",
  values: [eventId],
});

export const insertEvent = ({ eventId, type, invoiceId, json }: Paid): Statement => ({
  text: `insert into webhook_inbox (endpoint, event_id, event_type, object_id, payload)
    values ('billing', $1, $2, $3, $4)
    on conflict (provider, endpoint, event_id) do nothing`,
  values: [eventId, type, invoiceId, json],
});

export const effects = (paid: Paid): readonly Statement[] => [
  {
    text: `insert into invoices (id, customer_id, status, currency, amount_paid, paid_at)
      values ($1, $2, 'paid', $3, $4, now())
      on conflict (id) do update set status = excluded.status, amount_paid = excluded.amount_paid,
        paid_at = excluded.paid_at, updated_at = now()`,
    values: [paid.invoiceId, paid.customerId, paid.currency, paid.amount],
  },
  {
    text: `insert into ledger_entries (invoice_id, kind, amount, currency, event_id)
      values ($1, 'payment', $2, $3, $4) on conflict (invoice_id, kind) do nothing`,
    values: [paid.invoiceId, paid.amount, paid.currency, paid.eventId],
  },
  {
    text: `insert into outbox (aggregate_type, aggregate_id, event_type, payload)
      values ('Invoice', $1, 'InvoicePaymentBooked', $2)`,
    values: [
      paid.invoiceId,
      JSON.stringify({
        invoice_id: paid.invoiceId,
        amount: paid.amount,
        currency: paid.currency,
        customer_id: paid.customerId,
        event_id: paid.eventId,
      }),
    ],
  },
];

export const markProcessed = ({ eventId }: Paid): Statement => ({
  text: `update webhook_inbox set processed_at = now(), outcome = 'processed', attempts = attempts + 1
    where provider = 'stripe' and endpoint = 'billing' and event_id = $1`,
  values: [eventId],
});

/** The event as processed already, and nothing else. */
export const insertMarked = ({ eventId, type, invoiceId, json }: Paid): Statement => ({
  text: `insert into webhook_inbox
      (endpoint, event_id, event_type, object_id, payload, attempts, processed_at, outcome)
    values ('billing', $1, $2, $3, $4, 1, now(), 'processed')
    on conflict (provider, endpoint, event_id) do nothing`,
  values: [eventId, type, invoiceId, json],
});

/** All of it as one statement, whose transaction is its own. */
export const insertWithEffects = (paid: Paid): Statement => ({
  text: `with event as (
      insert into webhook_inbox
        (endpoint, event_id, event_type, object_id, payload, attempts, processed_at, outcome)
      values ('billing', $1, $2, $3, $4, 1, now(), 'processed')
      on conflict (provider, endpoint, event_id) do nothing
      returning event_id
    ), invoice as (
      insert into invoices (id, customer_id, status, currency, amount_paid, paid_at)
      select $3, $5, 'paid', $6, $7::bigint, now() from event
      on conflict (id) do update set status = excluded.status, amount_paid = excluded.amount_paid,
        paid_at = excluded.paid_at, updated_at = now()
      returning id
    ), entry as (
      insert into ledger_entries (invoice_id, kind, amount, currency, event_id)
      select id, 'payment', $7::bigint, $6, $1 from invoice
      on conflict (invoice_id, kind) do nothing
      returning invoice_id
    )
    insert into outbox (aggregate_type, aggregate_id, event_type, payload)
    select 'Invoice', invoice_id, 'InvoicePaymentBooked', jsonb_build_object('invoice_id', invoice_id,
      'amount', $7::bigint, 'currency', $6::text, 'customer_id', $5::text, 'event_id', $1::text)
    from entry`,
  values: [
    paid.eventId,
    paid.type,
    paid.invoiceId,
    paid.json,
    paid.customerId,
    paid.currency,
    paid.amount,
  ],
});

/** A day of an inbox, made up: traffic that comes and goes, and a little of each trouble. */
import type { Client } from "pg";
import { type Endpoint, post } from "../local/deliver.ts";
import { invoiceEvent } from "../local/events.ts";

const EVENTS = 9_000;
const HOURS = 25;

/**
 * Fills an empty, migrated database.
 *
 * @returns the id of an event that was paid, booked and told.
 */
export async function fillDay(
  client: Client,
  door: Endpoint,
  tick: () => Promise<void>,
): Promise<string> {
  await client.query(TRAFFIC, [EVENTS]);
  await client.query(TROUBLE);
  const now = Math.floor(Date.now() / 1_000);
  const facts = {
    id: "in_1T8k2WJ4mPqX7vRd",
    status: "paid",
    customer: "cus_U3nVbKs81oYpTe",
    currency: "eur",
    total: 12_900,
    amountPaid: 12_900,
    livemode: false,
    created: now - 86_400,
    changed: now,
  } as const;
  const options = { apiVersion: "2026-10-28.endive" as const, livemode: false, created: now };
  const paid = invoiceEvent("invoice.paid", facts, {
    ...options,
    id: "evt_1T8k5cJ4mPqX7vRdWn02LsQe",
  });
  for (const id of [paid.id, "evt_1T8k5cJ4mPqX7vRdO9bAx3Zk"]) {
    const { status } = await post(door, JSON.stringify({ ...paid, id }));
    if (status !== 200) throw new Error(`The receiver answered ${status}.`);
  }
  // One hour in each.
  for (let hour = 0; hour < HOURS; hour++) await tick();
  await client.query(TOLD);
  return paid.id;
}

/** More by day than by night; each made twice as many at noon as at midnight. */
const TRAFFIC = `
  insert into webhook_inbox (endpoint, event_id, event_type, object_id, payload, attempts, received_at,
    processed_at, outcome, ignored_reason, duplicates)
  select 'billing', 'evt_1T' || substr(md5('e' || n), 1, 22), type, 'in_1T' || substr(md5('i' || n / 4), 1, 14),
    '{}', 1, received, received + (0.02 + random() ^ 6 * 3) * interval '1 second',
    case when ignored then 'ignored' else 'processed' end, case when ignored then 'no_handler' end,
    (random() < 0.04)::int
  from (
    select n, received, type, type not like 'invoice.%' as ignored
    from (
      select n, now() - (n::float8 / $1 + 0.012 * sin(n::float8 / $1 * 40)) * interval '24 hours'
          - random() * interval '3 minutes' as received,
        (array['invoice.paid', 'invoice.payment_succeeded', 'invoice.created', 'invoice.finalized',
          'invoice.updated', 'invoice.updated', 'invoice.payment_failed', 'charge.succeeded',
          'payment_intent.succeeded', 'customer.subscription.updated'])[1 + floor(random() * 10)] as type
      from generate_series(1, $1::int) n) as drawn) as made`;

const TROUBLE = `
  with parked as (
    insert into webhook_inbox (endpoint, event_id, event_type, object_id, payload, attempts, parked_at,
      last_error, received_at)
    select 'billing', 'evt_1U' || substr(md5('p' || n), 1, 22), 'invoice.paid',
      'in_1U' || substr(md5('q' || n), 1, 14), '{}', 1, now(),
      case when n % 6 = 0 then 'TypeError' else 'PermanentError:amount_paid_unusable' end,
      now() - n * interval '7 minutes'
    from generate_series(1, 38) n
  ), open as (
    insert into discrepancies (kind, object_id, event_id, detail, found_at, resolved_at, resolution)
    values
      ('void_after_paid', 'in_1T6c0qJ4mPqX7vRd', 'evt_1T8aYtJ4mPqX7vRdKm31',
        '{"status": "paid", "event_says": "void", "currency": "eur"}', now() - interval '3 hours', null, null),
      ('payment_mismatch', 'in_1T7r9zJ4mPqX7vRd', 'evt_1T8bQwJ4mPqX7vRdAa92',
        '{"amount": 4900, "currency": "usd", "booked_amount": 4500, "booked_currency": "usd"}',
        now() - interval '50 minutes', null, null),
      ('status_differs', 'in_1T1a1aJ4mPqX7vRd', null, '{"here": "open", "at_stripe": "void"}',
        now() - interval '2 days', now() - interval '1 day', 'voided by hand here, see the ticket')
  ), missed as (
    insert into sweep_gaps (endpoint, event_id, event_type, created_at, found_at, run_id)
    select 'billing', 'evt_1T' || substr(md5('e' || n * 700), 1, 22), 'invoice.paid',
      now() - n * interval '5 hours', now() - n * interval '5 hours' + interval '26 minutes', n
    from generate_series(1, 4) n
  ), messages as (
    insert into outbox (aggregate_type, aggregate_id, event_type, payload, created_at, published_at, done_at)
    select 'Invoice', 'in_1T' || substr(md5('i' || n), 1, 14), 'InvoicePaymentBooked', '{}',
      now() - n * interval '9 minutes', now() - n * interval '9 minutes' + interval '0.4 s',
      now() - n * interval '9 minutes' + interval '1.1 s'
    from generate_series(1, 30) n
  ), purged as (
    insert into heartbeats (name, started_at, completed_at, detail)
    values ('retention', now() - interval '9 hours', now() - interval '9 hours', '{}')
  ), swept as (
    insert into sweep_runs (account, window_from, window_to, available_at, completed_at)
    values ('own', now() - interval '80 minutes', now() - interval '20 minutes', now(), now())
  )
  insert into operator_actions (at, operator, via, action, subject, why, affected)
  values (now() - interval '1 day', 'Grace', 'session', 'resolve_discrepancy', 'discrepancy 3',
      'voided by hand here, see the ticket', 1),
    (now() - interval '6 hours', 'Ada', 'cli', 'requeue_events', 'events parked with TypeError',
      'null-safe since 9be01d3', 12),
    (now() - interval '2 hours', 'Ada', 'session', 'requeue_messages', 'messages with Uncertain',
      'looked at Stripe: none of them happened', 3)`;

/** As its consumer would leave it: no queue is bound here. */
const TOLD = `
  update outbox set published_at = created_at + interval '0.3 s', done_at = created_at + interval '1 s'
  where done_at is null`;

/** What goes with an inbox of many events, in the tables beside it. */
import type { Client } from "pg";
import { say } from "./bench.ts";

/** Needs the functions that `many-events.ts` makes for ids. */
export async function fillOtherTables(client: Client, rows: number): Promise<void> {
  // Foreign keys hold by construction; to check each takes longer than all the rest.
  await client.query("set session_replication_role = replica");
  for (const [table, statement] of Object.entries(statements(rows))) {
    say(table);
    await client.query(statement);
  }
  await client.query("reset session_replication_role");
}

/** Without parameters. */
function statements(rows: number): Readonly<Record<string, string>> {
  const invoices = Math.ceil(rows / 10);
  const messages = Math.ceil(rows * 0.07);
  return {
    invoices: `
      insert into invoices (id, customer_id, status, currency, amount_paid, paid_at, updated_at)
      select bench.invoice(n), bench.customer(n), status, 'eur',
        case when status = 'paid' then 4200 else 0 end, case when status = 'paid' then at end, at
      from (select n, until - (${invoices} - n) * seconds * 10 * interval '1 second' as at,
          (array['paid', 'paid', 'paid', 'paid', 'paid', 'paid', 'paid', 'open', 'draft', 'void'])
            [1 + n % 10] as status
        from generate_series(1, ${invoices}::bigint) n cross join bench.plan) as drawn`,
    ledger_entries: `
      insert into ledger_entries (invoice_id, kind, amount, currency, event_id)
      select id, 'payment', amount_paid, currency, 'evt' || substr(id, 3)
      from invoices where status = 'paid'`,
    // The last fourteenth waits; the one before has left and is not done.
    outbox: `
      insert into outbox (aggregate_type, aggregate_id, event_type, payload, created_at,
        published_at, done_at, available_at, attempts)
      select 'Invoice', aggregate_id, 'InvoicePaymentBooked',
        jsonb_build_object('invoice_id', aggregate_id, 'amount', 4200, 'currency', 'eur',
          'customer_id', bench.customer(invoice), 'event_id', bench.id('evt', n * 10)),
        at, case when n <= ${messages}::bigint * 13 / 14 then at + interval '30 seconds' end,
        case when n <= ${messages}::bigint * 12 / 14 then at + interval '40 seconds' end, at, 1
      from (select n, invoice, bench.invoice(invoice) as aggregate_id,
          until - (${messages} - n) * interval '30 days' / ${messages} as at
        from generate_series(1, ${messages}::bigint) n cross join bench.plan
        cross join lateral (select ${invoices}::bigint * (${messages} + n) / ${2 * messages}
          as invoice) as of) as drawn`,
    call_journal: `
      insert into call_journal (key, message_id, state, attempts, first_called_at, available_at,
        done_at, parked_at, result, last_error)
      select 'receipt-' || bench.invoice(n), n, state, 1, at, at,
        case when state = 'done' then at end, case when state = 'parked' then at end,
        case when state = 'done' then 'sent' end, case when state <> 'done' then 'Http500' end
      from (select n, until - n * interval '1 minute' as at,
          case when n % 100 = 0 then 'parked' when n % 10 = 0 then 'calling' else 'done' end as state
        from generate_series(1, ${messages / 14}::bigint) n cross join bench.plan) as drawn`,
    discrepancies: `
      insert into discrepancies (kind, object_id, event_id, detail, found_at, resolved_at, resolution)
      select (array['paid_after_void', 'void_after_paid', 'payment_mismatch', 'missing_here',
          'missing_at_stripe', 'status_differs'])[1 + n % 6], bench.invoice(n), bench.id('evt', n),
        '{"status": "void", "event_says": "paid", "amount": 4200, "currency": "eur"}',
        until - n * interval '1 hour', case when n % 2 = 0 then until end,
        case when n % 2 = 0 then 'Refunded.' end
      from generate_series(1, 2000) n cross join bench.plan`,
    sweep_runs: `
      insert into sweep_runs (account, window_from, window_to, pages, events, missing, started_at,
        completed_at)
      select 'own', until - n * interval '1 hour' - interval '3 hours', until - n * interval '1 hour',
        50, 5000, 1, until - n * interval '1 hour',
        case when n > 0 then until - n * interval '1 hour' + interval '1 minute' end
      from generate_series(0, 2160) n cross join bench.plan order by n desc`,
    sweep_gaps: `
      insert into sweep_gaps (endpoint, event_id, event_type, created_at, found_at, run_id)
      select 'billing', bench.id('evt', ${rows} - n * ${rows}::bigint / 1000), 'invoice.paid',
        until - n * interval '2 hours', until - n * interval '2 hours', 1
      from generate_series(0, 999) n cross join bench.plan`,
    heartbeats: `
      insert into heartbeats (name, started_at, completed_at, detail)
      values ('tick', now(), now(), '{"processed": 70, "parked": 0}'),
        ('retention', now() - interval '5 hours', now() - interval '5 hours', '{"purged": 110000}'),
        ('hours', now(), now(), jsonb_build_object('until', date_trunc('hour', now())))`,
    inbox_hours: `
      insert into inbox_hours (hour, endpoint, event_type, ignored_reason, received, duplicates,
        settled, p50_seconds, p95_seconds, p99_seconds)
      select date_trunc('hour', until) - h * interval '1 hour', of.*, 200, 6, 80, 0.7, 1.5, 150
      from bench.plan cross join generate_series(1, 24) h cross join (
        select endpoint, event_type, coalesce(reason, '') from bench.kinds group by 1, 2, 3
        union all select '', '', '') as of`,
  };
}

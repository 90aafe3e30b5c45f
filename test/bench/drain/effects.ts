/**
 * What one `invoice.paid` has for effects, as the handlers of the peers write them: the invoice is
 * paid, the ledger has an entry, the outbox a message. Where the job's completion does not commit
 * with them, a row of its own tells that the event was there before.
 *
 * Left out, in favour of the peers: the discrepancies that our handler looks for.
 */
import type { Client, PoolClient } from "pg";
import { AMOUNT, paidEvent } from "../waiting-events.ts";

export interface PaidEvent {
  readonly id: string;
  readonly data: {
    readonly object: {
      readonly id: string;
      readonly customer: string;
      readonly currency: string;
      readonly amount_paid: number;
    };
  };
}

/** The event of a job, whole, each about an invoice of its own. */
export function waitingEvent(number: number) {
  return paidEvent(`evt_drain_${String(number).padStart(9, "0")}`, AMOUNT);
}

export type Session = Pick<Client | PoolClient, "query">;
export type Effects = (session: Session, event: PaidEvent) => Promise<void>;

/** For peers whose completion is not atomic. */
export const PROCESSED_EVENTS = "create table processed_events (event_id text primary key)";

/** Each statement awaited before the next one, as a handler is usually written. */
export const textbook: Effects = async (session, event) => {
  const { id, customer, currency, amount_paid: amount } = event.data.object;
  await session.query(
    `insert into invoices (id, customer_id, status, currency, amount_paid, paid_at)
     values ($1, $2, 'paid', $3, $4, now())
     on conflict (id) do update set status = 'paid', amount_paid = excluded.amount_paid,
       paid_at = now(), updated_at = now()
     where invoices.status in ('draft', 'open', 'uncollectible')`,
    [id, customer, currency, amount],
  );
  const { rowCount } = await session.query(
    `insert into ledger_entries (invoice_id, kind, amount, currency, event_id)
     select id, 'payment', $2, $3, $4 from invoices where id = $1 and status = 'paid'
     on conflict (invoice_id, kind) do nothing`,
    [id, amount, currency, event.id],
  );
  if (rowCount === 0) return;
  await session.query(
    `insert into outbox (aggregate_type, aggregate_id, event_type, payload)
     values ('Invoice', $1, 'InvoicePaymentBooked', $2)`,
    [
      id,
      JSON.stringify({
        invoice_id: id,
        amount,
        currency,
        customer_id: customer,
        event_id: event.id,
      }),
    ],
  );
};

/** The same, if the event is new, in a transaction of its own. */
export const textbookOnce: Effects = (session, event) =>
  inTransaction(session, async () => {
    const { rowCount } = await session.query(
      "insert into processed_events values ($1) on conflict do nothing",
      [event.id],
    );
    if (rowCount === 1) await textbook(session, event);
  });

/** The same effects in one statement. */
export const oneStatement: Effects = async (session, event) => {
  await session.query(statement(""), facts(event));
};

/** With a name, so that a session parses and plans it once; few handlers go so far. */
export const prepared: Effects = async (session, event) => {
  await session.query({ name: "book", text: statement(""), values: facts(event) });
};

/** The same, if the event is new: one statement, which is its own transaction. */
export const preparedOnce: Effects = async (session, event) => {
  await session.query({ name: "book_once", text: statement(FRESH), values: facts(event) });
};

/** Has a row for an event that is new. */
const FRESH = `fresh as (
  insert into processed_events values ($5) on conflict do nothing returning event_id),`;

function facts(event: PaidEvent): unknown[] {
  const { id, customer, currency, amount_paid: amount } = event.data.object;
  return [id, customer, currency, amount, event.id];
}

function statement(fresh: string): string {
  return `
    with ${fresh} invoice as (
      insert into invoices (id, customer_id, status, currency, amount_paid, paid_at)
      select $1::text, $2::text, 'paid', $3::text, $4::bigint, now()
      ${fresh && "from fresh"}
      on conflict (id) do update set
        status = case when invoices.status in ('draft', 'open', 'uncollectible')
          then 'paid' else invoices.status end,
        paid_at = coalesce(invoices.paid_at, case when invoices.status <> 'void' then now() end),
        amount_paid = case when invoices.status <> 'void'
          then excluded.amount_paid else invoices.amount_paid end,
        updated_at = now()
      returning *
    ), entry as (
      insert into ledger_entries (invoice_id, kind, amount, currency, event_id)
      select id, 'payment', $4::bigint, $3::text, $5::text from invoice where status = 'paid'
      on conflict (invoice_id, kind) do nothing
      returning *
    )
    insert into outbox (aggregate_type, aggregate_id, event_type, payload)
    select 'Invoice', invoice_id, 'InvoicePaymentBooked',
      jsonb_build_object('invoice_id', invoice_id, 'amount', amount, 'currency', currency,
        'customer_id', $2::text, 'event_id', event_id)
    from entry`;
}

export async function inTransaction(session: Session, work: () => Promise<void>): Promise<void> {
  await session.query("begin");
  try {
    await work();
    await session.query("commit");
  } catch (error) {
    await session.query("rollback");
    throw error;
  }
}

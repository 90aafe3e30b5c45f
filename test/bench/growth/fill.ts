/**
 * An inbox as years of traffic leave it: processed events, of which retention has purged the
 * payload, before events that wait and still have theirs of 2 kB; the books and the outbox beside it
 * have grown with it.
 *
 * Not imitated: the holes and dead rows that years of updates leave behind, and payloads of the
 * last 30 days. Neither lies on the way of a claim, nor of a receipt.
 */
import type { Client } from "pg";
import { say, withClient } from "../bench.ts";
import { AMOUNT, paidEvent } from "../waiting-events.ts";
import { withoutIndexes } from "./indexes.ts";
import { inLanes, type Piece } from "./lanes.ts";

export interface Grown {
  readonly processed: number;
  readonly waiting: number;
}

const CHUNK = 250_000;

/** Fills an empty, migrated database. */
export async function fillGrown(databaseUrl: string, { processed, waiting }: Grown): Promise<void> {
  const startedAt = performance.now();
  const tell = (what: string): void =>
    say(`${((performance.now() - startedAt) / 1_000).toFixed(0)} s: ${what}`);
  const tables = ["webhook_inbox", "invoices", "ledger_entries", "outbox"];
  await withoutIndexes(databaseUrl, tables, async () => {
    await inLanes(databaseUrl, [
      ...besides(processed),
      ...chunks(processed, PROCESSED, []),
      ...chunks(waiting, WAITING, [JSON.stringify(paidEvent("evt_@", AMOUNT))]),
    ]);
    tell(`${processed} processed and ${waiting} waiting events`);
  });
  tell("indexes");
  await withClient(databaseUrl, async (client) => {
    await client.query("vacuum (analyze)");
    // What was filled is written to the disk now, and not while something is measured.
    await client.query("checkpoint");
  });
  tell("vacuumed");
}

function chunks(count: number, insert: string, values: readonly unknown[]): Piece[] {
  return Array.from({ length: Math.ceil(count / CHUNK) }, (_, index) => (client: Client) => {
    const first = index * CHUNK + 1;
    return client.query(insert, [first, Math.min(first + CHUNK - 1, count), count, ...values]);
  });
}

/** As long as Stripe's, and in the order of time. */
const id = (prefix: string): string => `'${prefix}_1' || (100000000000000 + n) || 'Qx7hTb2mKd'`;

/** A second after one another, the last of them an hour ago. */
const PROCESSED = `
  insert into webhook_inbox (endpoint, event_id, event_type, object_id, received_at, available_at,
    attempts, fence, processed_at, outcome)
  select 'billing', ${id("evt")}, 'invoice.paid', ${id("in")}, at, at, 1, 2,
    at + interval '1 second', 'processed'
  from generate_series($1::bigint, $2::bigint) n
  cross join lateral (select now() - interval '1 hour' - ($3::bigint - n) * interval '1 second' as at)`;

/**
 * A millisecond after one another, the last of them half an hour ago. Only the customer differs
 * within the payload: an index reads it, and nothing else does before the event is processed.
 */
const WAITING = `
  insert into webhook_inbox (endpoint, event_id, event_type, object_id, payload, received_at,
    available_at)
  select 'billing', ${id("evt_w")}, 'invoice.paid', ${id("in_w")},
    jsonb_set($4::jsonb, '{data,object,customer}', to_jsonb(${id("cus")})), at, at
  from generate_series($1::bigint, $2::bigint) n
  cross join lateral (select
    now() - interval '30 minutes' - ($3::bigint - n) * interval '1 millisecond' as at)`;

/** An invoice of ten events, each paid and told. */
function besides(processed: number): Piece[] {
  const each = `from generate_series(1, ${Math.ceil(processed / 10)}::bigint) n`;
  return [
    `insert into invoices (id, customer_id, status, currency, amount_paid, paid_at)
     select ${id("in")}, ${id("cus")}, 'paid', 'eur', ${AMOUNT}, now() ${each}`,
    `insert into ledger_entries (invoice_id, kind, amount, currency, event_id)
     select ${id("in")}, 'payment', ${AMOUNT}, 'eur', ${id("evt")} ${each}`,
    `insert into outbox (aggregate_type, aggregate_id, event_type, payload, published_at, done_at)
     select 'Invoice', ${id("in")}, 'InvoicePaymentBooked', '{"amount": ${AMOUNT}}', now(), now()
     ${each}`,
  ].map((insert) => (client: Client) => client.query(insert));
}

/** Events as the inbox holds them when they wait for the cron: stored, due, never attempted. */
import { invoiceEvent } from "../local/events.ts";
import type { Client } from "pg";

/** What differs from one event to the next; no event has this character anywhere else. */
const NUMBER = "@";

export interface Waiting {
  readonly count: number;
  /** Told apart by it from other events of the same database. */
  readonly name: string;
}

/** An `invoice.paid` of Stripe's test mode, with a body as Stripe's, some 2 kB of it. */
export function paidEvent(id: string, amountPaid: number) {
  const at = 1_790_000_000;
  return invoiceEvent(
    "invoice.paid",
    {
      id: id.replace("evt", "in"),
      status: "paid",
      customer: id.replace("evt", "cus"),
      currency: "eur",
      total: amountPaid,
      amountPaid,
      livemode: false,
      created: at,
      changed: at,
    },
    { id, apiVersion: "2026-10-28.endive" },
  );
}

/** Due a millisecond after one another, each about an invoice of its own. */
export async function fillWithWaiting(client: Client, { count, name }: Waiting): Promise<void> {
  const event = JSON.stringify(paidEvent(`evt_${name}_${NUMBER}`, AMOUNT));
  await client.query(
    `insert into webhook_inbox
       (endpoint, event_id, event_type, object_id, payload, received_at, available_at)
     select 'billing', payload->>'id', payload->>'type', payload#>>'{data,object,id}', payload,
       due, due
     from generate_series(1, $1::int) n
     cross join lateral (
       select replace($2::text, $3::text, lpad(n::text, 9, '0'))::jsonb as payload,
         now() - ($1::int - n) * interval '1 millisecond' as due) event`,
    [count, event, NUMBER],
  );
}

/** What each of them books, in minor units. */
export const AMOUNT = 4_200;

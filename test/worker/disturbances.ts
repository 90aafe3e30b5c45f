/**
 * What tests do to a receiver: endpoints whose handlers misbehave, sessions that hold locks.
 * Runs in workerd and in Node.
 */
import { type SQL, sql } from "drizzle-orm";
import { Client } from "pg";
import { invoiceHandlers } from "../../src/billing/handlers.ts";
import type { Tx, Write } from "../../src/db/connect.ts";
import type { Endpoints } from "../../src/endpoints.ts";
import type { HandlerTable } from "../../src/inbox/handler.ts";
import type { Answer, Testbed } from "./testbed.ts";

/** The handler that books, as it is shipped. */
export const book = invoiceHandlers["invoice.paid"];

type PaidEvent = Parameters<typeof book>[0];

export const ONE_BOOKING = {
  inbox: 1,
  invoices: 1,
  entries: 1,
  messages: 1,
  discrepancies: 0,
} as const;

export const NOTHING_BOOKED = { ...ONE_BOOKING, invoices: 0, entries: 0, messages: 0 } as const;

/** One endpoint for our own account, with these handlers. */
export function billing(handlers: HandlerTable): Endpoints {
  return { billing: { secrets: "STRIPE_WEBHOOK_SECRET", accounts: "own", handlers } };
}

/** Books as usual, after `step`; `call` counts from 1. */
export function bookAfter(step: (tx: Tx, call: number, event: PaidEvent) => unknown): Endpoints {
  let calls = 0;
  return billing({
    "invoice.paid": async (event, tx) => {
      await step(tx, ++calls, event);
      return book(event, tx);
    },
  });
}

/** Books as usual, and returns these writes too, behind the booking or `first`. */
export function bookWith(extra: (tx: Tx) => readonly Write[], place?: "first"): Endpoints {
  return billing({
    "invoice.paid": (event, tx) =>
      place === "first" ? [...extra(tx), ...book(event, tx)] : [...book(event, tx), ...extra(tx)],
  });
}

/** A statement that fails with this SQLSTATE. */
export function raising(sqlstate: string): SQL {
  return sql.raw(`do $$ begin raise exception using errcode = '${sqlstate}'; end $$`);
}

/** How many answers there were of each outcome. */
export function tally(answers: readonly Answer[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { outcome } of answers) counts[String(outcome)] = (counts[String(outcome)] ?? 0) + 1;
  return counts;
}

/** Everything that the inbox row says of an event's progress. */
export async function progress(inbox: Testbed, eventId: string): Promise<Record<string, unknown>> {
  const [row = {}] = await inbox.rows(
    `select outcome, attempts, last_error, parked_at is not null as parked, duplicates
      from webhook_inbox where event_id = $1`,
    [eventId],
  );
  return row;
}

/** Another session of the database, inside a transaction, while `use` runs. */
export async function whileAnother<T>(
  { databaseUrl }: Testbed,
  use: (other: Client) => Promise<T>,
): Promise<T> {
  const other = new Client({ connectionString: databaseUrl, application_name: "test" });
  await other.connect();
  try {
    await other.query("begin");
    return await use(other);
  } finally {
    await other.end();
  }
}

/** Takes the inbox key of an event, as a delivery at work does. */
export async function takeKey(other: Client, event: { id: string; type: string }): Promise<void> {
  await other.query(
    `insert into webhook_inbox (endpoint, event_id, event_type, payload)
      values ('billing', $1, $2, '{}')`,
    [event.id, event.type],
  );
}

/** Returns once a delivery waits for a lock, or for whatever else `wait` names. */
export async function untilSomeoneWaits(inbox: Testbed, wait = "Lock"): Promise<void> {
  const giveUpAt = Date.now() + 20_000;
  while (Date.now() < giveUpAt) {
    const [row] = await inbox.rows(
      `select count(*)::int as waiting from pg_stat_activity where datname = current_database()
        and application_name = 'stripe-inbox' and $1 in (wait_event_type, wait_event)`,
      [wait],
    );
    if (row?.["waiting"] !== 0) return;
  }
  throw new Error(`No delivery came to wait for ${wait}.`);
}

/** As Stripe does: the same again, until the answer has this status. */
export async function deliverUntil(
  inbox: Testbed,
  event: object,
  status: 200 | 500,
): Promise<Answer> {
  for (let n = 0; n < 1_000; n++) {
    const answer = await inbox.deliver(event);
    if (answer.status === status) return answer;
  }
  throw new Error(`No delivery of a thousand was answered with ${status}.`);
}

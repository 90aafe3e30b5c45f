/**
 * What followed from the booked payments, at the fake Stripe API: each must have had its effect
 * there once. What still has to leave, or to be done again, is waited for.
 */
import { setTimeout as pause } from "node:timers/promises";
import { Client } from "pg";
import * as v from "valibot";
import { callTick } from "./cron.ts";
import type { Receiver } from "./run-file.ts";

export interface Effects {
  /** Payments that were booked, and have a customer to tell of it. */
  readonly due: number;
  readonly calls: number;
  /** One sentence each; empty when each had its effect once. */
  readonly differences: readonly string[];
}

interface Message {
  readonly invoice_id: string;
  readonly event_id: string;
  readonly customer_id: string | null;
  readonly done: boolean;
  /** Why a person must look, at the message or its call; null: nobody must. */
  readonly parked: string | null;
}

const POLL_MS = 250;
/** Several failures in a row, each with its back-off. */
const PATIENCE_MS = 120_000;

/** What the fake API tells of itself. */
export const ApiReport = v.object({
  /** How often each key was called with. */
  calls: v.record(v.string(), v.number()),
  told: v.array(v.object({ customer: v.string(), invoice: v.nullable(v.string()) })),
});

/** @returns null where there is no fake API to ask. */
export async function auditEffects(
  { url, databaseUrl, apiUrl }: Pick<Receiver, "url" | "databaseUrl" | "apiUrl">,
  invoiceIds: readonly string[],
  signal?: AbortSignal,
): Promise<Effects | null> {
  if (apiUrl === null) return null;
  const client = new Client({
    connectionString: databaseUrl,
    application_name: "simulated stripe",
  });
  await client.connect();
  try {
    const endsAt = Date.now() + PATIENCE_MS;
    for (;;) {
      const messages = await readMessages(client, invoiceIds);
      const open = messages.filter(({ done, parked }) => !done && parked === null);
      if (open.length === 0 || Date.now() > endsAt) {
        return compareEffects(invoiceIds, messages, await askApi(apiUrl, signal));
      }
      await callTick(url, signal);
      await pause(POLL_MS, undefined, signal ? { signal } : {});
    }
  } finally {
    await client.end();
  }
}

async function readMessages(client: Client, invoiceIds: readonly string[]): Promise<Message[]> {
  const { rows } = await client.query<Message>(
    `select aggregate_id as invoice_id, payload ->> 'event_id' as event_id,
        payload ->> 'customer_id' as customer_id, outbox.done_at is not null as done,
        case when outbox.parked_at is not null then outbox.last_error
             else call.last_error end as parked
      from outbox left join call_journal call on message_id = outbox.id and state = 'parked'
      where aggregate_id = any($1) and event_type = 'InvoicePaymentBooked'`,
    [invoiceIds],
  );
  return rows;
}

async function askApi(
  apiUrl: string,
  signal: AbortSignal | undefined,
): Promise<v.InferOutput<typeof ApiReport>> {
  const response = await fetch(`${apiUrl}/report`, signal ? { signal } : {});
  return v.parse(ApiReport, await response.json());
}

function compareEffects(
  invoiceIds: readonly string[],
  messages: readonly Message[],
  { calls, told }: v.InferOutput<typeof ApiReport>,
): Effects {
  const due = messages.filter((message) => message.customer_id !== null);
  const wanted = Map.groupBy(due, ({ invoice_id }) => invoice_id);
  const found = Map.groupBy(told, ({ invoice }) => invoice);
  return {
    due: due.length,
    calls: due.reduce((sum, { event_id }) => sum + (calls[keyOf(event_id)] ?? 0), 0),
    differences: [
      ...invoiceIds.flatMap((id) => {
        // A payment is booked once, however many messages speak of it.
        const should = [...new Set(wanted.get(id)?.map(({ customer_id }) => customer_id))].join(
          ", ",
        );
        const is = (found.get(id) ?? []).map(({ customer }) => customer).join(", ");
        if (is === should) return [];
        return [`payment of ${id} was told to [${is}] at Stripe, expected [${should}]`];
      }),
      ...messages.flatMap(({ event_id, done, parked }) =>
        done ? [] : [`message of ${event_id} is not done${parked === null ? "" : ` (${parked})`}`],
      ),
    ],
  };
}

/** As README and design say it; not the product's own function. */
function keyOf(eventId: string): string {
  return `webhook:${eventId}:update-customer-metadata`;
}

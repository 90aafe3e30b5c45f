/**
 * Every change of an inbox row: one statement each, with its condition in the WHERE.
 */
import { type SQL, sql } from "drizzle-orm";
import type { Write } from "../db/connect.ts";
import { webhookInbox as inbox } from "../db/schema.ts";
import { insideTransaction } from "../db/transaction.ts";
import type { VerifiedEvent } from "../stripe/verify.ts";
import type { EndpointRules, IgnoredReason } from "./rules.ts";

/** One event as it reached one endpoint. */
export interface Delivery {
  readonly event: VerifiedEvent;
  readonly endpoint: EndpointRules;
}

export interface FailureRecord {
  /** An error's class or SQLSTATE. */
  readonly code: string;
  /** The attempt at which such a failure parks the row; null: none does. */
  readonly parksAtAttempt: number | null;
  readonly backoffCapSeconds: number;
}

const unsettled = sql`${inbox.processedAt} is null and ${inbox.parkedAt} is null`;

/**
 * The row, new or unsettled, as settled; no row when it was settled or parked before.
 * An existing row keeps the payload of its first delivery, and returns it as `stored`; should it
 * hold another type under this id, a delivery that is to be ignored does not settle it.
 * Insert with the mark set equals insert, then update: only the commit is visible.
 *
 * An insert starts with fence 0, and every change of the row adds to it: so a fence above 0 tells
 * here that the row was there before.
 */
export function settle(delivery: Delivery, ignored: IgnoredReason | null): Write {
  const outcome = ignored === null ? "processed" : "ignored";
  return sql`
    insert into ${inbox} (endpoint, event_id, event_type, object_id, payload, payload_altered,
      attempts, processed_at, outcome, ignored_reason)
    select ${receivedColumns(delivery)}, 1, now(), ${outcome}::text, ${ignored}::text
    where ${insideTransaction}
    on conflict (provider, endpoint, event_id) do update set
      attempts = ${inbox.attempts} + 1, fence = ${inbox.fence} + 1, last_error = null,
      processed_at = excluded.processed_at, outcome = excluded.outcome,
      ignored_reason = excluded.ignored_reason
    where ${unsettled} and (excluded.outcome = 'processed'
      or ${inbox.eventType} = excluded.event_type)
    returning payload_altered, case when fence > 0 then payload::text end as stored`;
}

/** Within the transaction that settled it: there was nothing to do after all. */
export function settleAsIgnored(delivery: Delivery, ignored: IgnoredReason): Write {
  return sql`update ${inbox} set outcome = 'ignored', ignored_reason = ${ignored}
    where ${keyOf(delivery)}`;
}

/**
 * The failure of an attempt, on a row that is new or still unsettled: counted, with a back-off of
 * full jitter before the next attempt, and parked when that was the last.
 */
export function recordFailure(delivery: Delivery, failure: FailureRecord): Write {
  const cap = sql`${failure.backoffCapSeconds}::int`;
  const nextAttemptAt = (attempts: SQL): SQL =>
    sql`now() + least(${cap}, 2 ^ least(${attempts}, 30)) * random() * interval '1 second'`;
  const parkedAt = (attempts: SQL): SQL =>
    sql`case when ${attempts} >= ${failure.parksAtAttempt}::int then now() end`;
  const first = sql`1`;
  const next = sql`${inbox.attempts} + 1`;
  return sql`
    insert into ${inbox} (endpoint, event_id, event_type, object_id, payload, payload_altered,
      attempts, last_error, available_at, parked_at)
    select ${receivedColumns(delivery)}, ${first}, ${failure.code}::text, ${nextAttemptAt(first)},
      ${parkedAt(first)}
    where ${insideTransaction}
    on conflict (provider, endpoint, event_id) do update set
      attempts = ${next}, fence = ${inbox.fence} + 1, last_error = excluded.last_error,
      available_at = ${nextAttemptAt(next)}, parked_at = ${parkedAt(next)}
    where ${unsettled}
    returning parked_at is not null as parked`;
}

/** What the row is now: `settled`, `parked`, or neither; no row when there is none. */
export function readState(delivery: Delivery): Write {
  return sql`select processed_at is not null as settled, parked_at is not null as parked
    from ${inbox} where ${keyOf(delivery)}`;
}

/** A delivery that found nothing left to do. */
export function countDuplicate(delivery: Delivery): Write {
  return sql`update ${inbox} set duplicates = duplicates + 1
    where ${keyOf(delivery)} and ${insideTransaction}`;
}

function receivedColumns({ endpoint, event }: Delivery): SQL {
  return sql`${endpoint.name}::text, ${event.id}::text, ${event.type}::text,
    ${event.objectId}::text, ${event.json}::text::jsonb, ${event.altered}::boolean`;
}

function keyOf({ endpoint, event }: Delivery): SQL {
  return sql`provider = 'stripe' and endpoint = ${endpoint.name} and event_id = ${event.id}`;
}

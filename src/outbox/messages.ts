/**
 * Every change of an outbox row on its way out: one statement each, with its condition in the
 * WHERE. Who holds a claim changes the row only while its fence is the one that was claimed.
 */
import { type SQL, sql } from "drizzle-orm";
import type { Row, Write } from "../db/connect.ts";
import { outbox } from "../db/schema.ts";
import { insideTransaction } from "../db/transaction.ts";

/** A message that is ours to send, until somebody else claims it. */
export interface ClaimedMessage {
  readonly id: number;
  readonly fence: number;
  readonly aggregateType: string;
  readonly aggregateId: string;
  readonly eventType: string;
  readonly payload: unknown;
}

export interface SendFailure {
  /** An error's class. */
  readonly code: string;
  readonly maxAttempts: number;
  readonly backoffCapSeconds: number;
}

const waiting = sql`${outbox.publishedAt} is null and ${outbox.parkedAt} is null`;

/**
 * At most `limit` messages, the longest due first, as ours for the length of a lease: of each
 * aggregate only the oldest that has not left. It blocks those behind it, whatever it waits for: a
 * lease, a back-off, or a person.
 *
 * Ids say what is older within one aggregate, whose writers wait for each other. Between aggregates
 * they say nothing (a smaller one may commit later), and no message is ever looked for above one.
 *
 * `offset 0` keeps the question about each message a question to an index. As a join, right after a
 * burst that the planner's statistics do not know of, it went through all that wait for each of them.
 */
export function claimMessages(limit: number, leaseSeconds: number): Write {
  return sql`
    with picked as materialized (
      select id from ${outbox}
      where ${waiting} and ${outbox.availableAt} <= now() and not exists (
        select from ${outbox} as older
        where older.published_at is null and older.aggregate_type = ${outbox.aggregateType}
          and older.aggregate_id = ${outbox.aggregateId} and older.id < ${outbox.id} offset 0)
      order by ${outbox.availableAt} limit ${limit} for update skip locked
    )
    update ${outbox} set attempts = ${outbox.attempts} + 1, fence = ${outbox.fence} + 1,
      last_error = null, available_at = clock_timestamp() + ${leaseSeconds}::int * interval '1 second'
    from picked where ${outbox.id} = picked.id and ${insideTransaction}
    returning ${outbox.id}::float8 as id, ${outbox.fence}::int as fence, aggregate_type,
      aggregate_id, event_type, payload`;
}

/** They have left. A message that was claimed again in the meantime is left to its new holder. */
export function markPublished(messages: readonly ClaimedMessage[]): Write {
  return sql`
    update ${outbox} set published_at = now(), last_error = null, fence = ${outbox.fence} + 1
    where ${isHeldBy(messages)} and ${insideTransaction}
    returning 1`;
}

/** They could not be sent: tried again after a back-off of full jitter, or parked. */
export function recordUnsent(messages: readonly ClaimedMessage[], failure: SendFailure): Write {
  const { code, maxAttempts, backoffCapSeconds } = failure;
  const seconds = sql`least(${backoffCapSeconds}::int, 2 ^ least(${outbox.attempts}, 30))`;
  return sql`
    update ${outbox} set last_error = ${code}, fence = ${outbox.fence} + 1,
      available_at = now() + ${seconds} * random() * interval '1 second',
      parked_at = case when ${outbox.attempts} >= ${maxAttempts}::int then now() end
    where ${isHeldBy(messages)} and ${insideTransaction}
    returning parked_at is not null as parked`;
}

/** Parks the messages whose last allowed attempt crashed: lease over, attempts used up, no record. */
export function parkCrashedMessages(maxAttempts: number): Write {
  return sql`
    with crashed as materialized (
      select id from ${outbox}
      where ${waiting} and ${outbox.availableAt} <= now() and ${outbox.lastError} is null
        and ${outbox.attempts} >= ${maxAttempts}::int
      for update skip locked
    )
    update ${outbox} set parked_at = now(), last_error = 'Crashed', fence = ${outbox.fence} + 1
    from crashed where ${outbox.id} = crashed.id and ${insideTransaction}
    returning 1`;
}

export function toMessage(row: Row): ClaimedMessage {
  return {
    id: Number(row["id"]),
    fence: Number(row["fence"]),
    aggregateType: String(row["aggregate_type"]),
    aggregateId: String(row["aggregate_id"]),
    eventType: String(row["event_type"]),
    payload: row["payload"],
  };
}

function isHeldBy(messages: readonly ClaimedMessage[]): SQL {
  const held = messages.map(({ id, fence }) => sql`(${id}::bigint, ${fence}::bigint)`);
  return sql`${waiting} and (${outbox.id}, ${outbox.fence}) in (${sql.join(held, sql`, `)})`;
}

/**
 * What is known of the calls that messages lead to: one row for each idempotency key, each change
 * of it one statement. A call is made only under a lease, and its failure is recorded only by
 * whoever holds that lease.
 */
import { type SQL, sql } from "drizzle-orm";
import type { Write } from "../db/connect.ts";
import { callJournal as journal, outbox } from "../db/schema.ts";
import { insideTransaction } from "../db/transaction.ts";

/** A call that is ours to make, until the lease ends. */
export interface ClaimedCall {
  readonly key: string;
  readonly messageId: number;
  readonly fence: number;
  /** Whether every attempt before this one, if any, is known to have done nothing. */
  readonly first: boolean;
}

export interface CallFailure {
  /** An error's class or code. */
  readonly code: string;
  /** Before that it is not to be tried again. */
  readonly retryAfterSeconds: number;
  /** Whether it is certain that this attempt did nothing. */
  readonly certain: boolean;
}

/**
 * How long a call whose end nobody knows may be repeated: Stripe forgets a key when it is a day
 * old, and a call under a forgotten key is a new one.
 * https://docs.stripe.com/api/idempotent_requests
 */
const KEY_IS_KNOWN = sql`interval '20 hours'`;

const free = sql`${journal.state} = 'calling' and ${journal.availableAt} <= now()`;

/** The call as ours, new or due again; no row when it is done, parked, or somebody is at it. */
export function claimCall(key: string, messageId: number, leaseSeconds: number): Write {
  const leaseEnd = sql`clock_timestamp() + ${leaseSeconds}::int * interval '1 second'`;
  return sql`
    insert into ${journal} (key, message_id, state, attempts, first_called_at, available_at)
    select ${key}::text, ${messageId}::bigint, 'calling', 1, now(), ${leaseEnd}
    where ${insideTransaction}
    on conflict (key) do update set
      attempts = ${journal.attempts} + 1, fence = ${journal.fence} + 1, last_error = null,
      first_called_at = coalesce(${journal.firstCalledAt}, now()),
      available_at = excluded.available_at
    where ${free}
    returning fence::int as fence, first_called_at = now() as first`;
}

/** Parks the call if nobody knows its end and its key is no longer good for finding out. */
export function parkUncertain(key: string): Write {
  return sql`
    update ${journal} set state = 'parked', parked_at = now(), fence = ${journal.fence} + 1,
      last_error = 'Uncertain'
    where ${journal.key} = ${key} and ${free}
      and ${journal.firstCalledAt} < now() - ${KEY_IS_KNOWN} and ${insideTransaction}
    returning 1`;
}

/** `done`, `parked`, or `calling` with the seconds until it is free again. */
export function readCall(key: string): Write {
  return sql`select state, greatest(1, ceil(extract(epoch from available_at - now())))::int as seconds
    from ${journal} where ${journal.key} = ${key}`;
}

/** A success is one, whoever holds the call by now, and whatever it was taken for. */
export function recordDone({ key }: ClaimedCall, result: string): Write {
  return sql`
    update ${journal} set state = 'done', done_at = now(), result = ${result}, last_error = null,
      parked_at = null, fence = ${journal.fence} + 1
    where ${journal.key} = ${key} and ${journal.state} <> 'done' and ${insideTransaction}
    returning 1`;
}

/** It failed, and is tried again. Only when nothing can have happened so far, the key is new again. */
export function recordCallFailure(call: ClaimedCall, failure: CallFailure): Write {
  const { code, retryAfterSeconds } = failure;
  const certain = failure.certain && call.first;
  return sql`
    update ${journal} set last_error = ${code}, fence = ${journal.fence} + 1,
      first_called_at = case when ${certain}::boolean then null else first_called_at end,
      available_at = now() + ${retryAfterSeconds}::int * interval '1 second'
    where ${isHeldBy(call)} and ${insideTransaction}
    returning 1`;
}

/** It can never succeed as it is, and did nothing this time: a person must look. */
export function parkCall(call: ClaimedCall, code: string): Write {
  return sql`
    update ${journal} set state = 'parked', parked_at = now(), last_error = ${code},
      first_called_at = case when ${call.first}::boolean then null else first_called_at end,
      fence = ${journal.fence} + 1
    where ${isHeldBy(call)} and ${insideTransaction}
    returning 1`;
}

/** The queue has given up on the message; no row when somebody is at work on it, or it has ended. */
export function parkUndelivered(key: string, messageId: number): Write {
  return sql`
    insert into ${journal} (key, message_id, state, attempts, available_at, parked_at, last_error)
    select ${key}::text, ${messageId}::bigint, 'parked', 0, now(), now(), 'Undelivered'
    where ${insideTransaction}
    on conflict (key) do update set state = 'parked', parked_at = now(),
      fence = ${journal.fence} + 1, last_error = coalesce(${journal.lastError}, 'Undelivered')
    where ${free}
    returning 1`;
}

/** The last error of a message of which nobody knows what should follow. */
export const UNREADABLE = "Unreadable";

/** There is no call, so that its key is made up from the message. */
export function parkUnreadable(messageId: number): Write {
  return sql`
    insert into ${journal} (key, message_id, state, attempts, available_at, parked_at, last_error)
    select ${unreadableKey(messageId)}::text, ${messageId}::bigint, 'parked', 0, now(), now(),
      ${UNREADABLE}::text
    where ${insideTransaction}
    on conflict (key) do nothing`;
}

/**
 * The message's consequence has happened (the journal must say so; null: nothing was to follow from
 * it). Then it has left, too, whatever its row still says: the queue can be faster than the one who
 * sent it. And an earlier version of the Worker, which could not read it, has nothing to review.
 */
export function markMessageDone(messageId: number, key: string | null): readonly Write[] {
  const happened = sql`exists (select from ${journal} where ${journal.key} = ${key}
    and ${journal.state} = 'done')`;
  const isTrue = key === null ? sql`true` : happened;
  const done = sql`
    update ${outbox} set done_at = now(), published_at = coalesce(${outbox.publishedAt}, now()),
      parked_at = null, last_error = null, fence = ${outbox.fence} + 1
    where ${outbox.id} = ${messageId} and ${outbox.doneAt} is null
      and ${isTrue} and ${insideTransaction}`;
  const forgotten = sql`
    delete from ${journal} where ${journal.key} = ${unreadableKey(messageId)}
      and ${isTrue} and ${insideTransaction}`;
  return [done, forgotten];
}

function unreadableKey(messageId: number): string {
  return `unreadable:${messageId}`;
}

function isHeldBy({ key, fence }: ClaimedCall): SQL {
  return sql`${journal.key} = ${key} and ${journal.fence} = ${fence} and ${journal.state} = 'calling'`;
}

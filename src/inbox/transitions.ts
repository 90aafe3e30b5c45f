/**
 * Every change of an inbox row: one statement each, with its condition in the WHERE.
 * Who works on a claim changes the row only while its fence is the one that was claimed.
 * Long, because what can become of a row is to be read in one place.
 */
import { type Placeholder, type SQL, sql } from "drizzle-orm";
import type { Write } from "../db/connect.ts";
import { webhookInbox as inbox } from "../db/schema.ts";
import { type Places, preparedTemplate, template } from "../db/template.ts";
import { insideTransaction } from "../db/transaction.ts";
import type { VerifiedEvent } from "../stripe/verify.ts";
import type { EndpointRules, IgnoredReason } from "./rules.ts";
import { isSelected, type Selection } from "./selection.ts";

/** One event as it reached one endpoint. */
export interface Delivery {
  readonly event: VerifiedEvent;
  readonly endpoint: EndpointRules;
}

/** One row of the inbox. */
export interface Key {
  readonly endpoint: string;
  readonly eventId: string;
}

/** An event that is ours to process, until somebody else claims it. */
export interface Claim extends Key {
  readonly fence: number;
}

export interface FailureRecord {
  /** An error's class or SQLSTATE. */
  readonly code: string;
  /**
   * The attempt at which such a failure parks the row. Null: it is not the event's fault; then it
   * is not counted as an attempt either, or an outage would use up what is there for faults.
   */
  readonly parksAtAttempt: number | null;
  readonly backoffCapSeconds: number;
}

/** Neither settled nor parked: it waits. */
export const unsettled = sql`${inbox.processedAt} is null and ${inbox.parkedAt} is null`;

/**
 * The same of a row that is found by its key. In these words no index of unsettled rows answers it:
 * right after a burst, the planner thinks such an index nearly empty, and reads all of it.
 */
const unsettledStill = sql`num_nulls(${inbox.processedAt}, ${inbox.parkedAt}) = 2`;

/**
 * The row, new or unsettled, as settled; no row when it was settled or parked before.
 * An existing row keeps the payload of its first delivery, and returns it as `stored`: that one is
 * then judged. So a delivery that is to be ignored settles no row but its own.
 * Insert with the mark set equals insert, then update: only the commit is visible.
 *
 * An insert starts with fence 0, and every change of the row adds to it: so a fence above 0 tells
 * here that the row was there before.
 */
export function settle(delivery: Delivery, ignored: IgnoredReason | null): Write {
  const outcome = ignored === null ? "processed" : "ignored";
  return settling({ ...receivedOf(delivery), outcome, ignored });
}

const settling = preparedTemplate<Received & { outcome: string; ignored: string | null }>(
  ({ outcome, ignored, ...received }) => sql`
    insert into ${inbox} (endpoint, event_id, event_type, object_id, payload, payload_altered,
      attempts, processed_at, outcome, ignored_reason)
    select ${receivedColumns(received)}, 1, now(), ${outcome}::text, ${ignored}::text
    where ${insideTransaction}
    on conflict (provider, endpoint, event_id) do update set
      attempts = ${inbox.attempts} + 1, fence = ${inbox.fence} + 1, last_error = null,
      processed_at = excluded.processed_at, outcome = excluded.outcome,
      ignored_reason = excluded.ignored_reason
    where ${unsettled} and excluded.outcome = 'processed'
    returning payload_altered, case when fence > 0 then payload::text end as stored`,
);

/** Within the transaction that settled it: there was nothing to do after all. */
export function settleAsIgnored(key: Key, ignored: IgnoredReason): Write {
  return sql`update ${inbox} set outcome = 'ignored', ignored_reason = ${ignored}
    where ${matches(key)}`;
}

/** SQLSTATE of a division by zero. */
export const NOT_MARKED = "22012";

/** A claimed event as settled; an error, and so the end of its transaction, when it is ours no longer. */
export function markOrFail({ endpoint, eventId, fence }: Claim): Write {
  return markingOrFailing({ endpoint, eventId, fence });
}

/**
 * An upsert, since the plan of one can be kept: that is half of what a mark costs. Where there is no
 * row any more, what is inserted has fence 0, and ends with the transaction.
 */
const markingOrFailing = preparedTemplate<Claim>(
  ({ endpoint, eventId, fence }) => sql`
    with marked as (
      insert into ${inbox} (endpoint, event_id, event_type, payload)
      select ${endpoint}::text, ${eventId}::text, '', '{}' where ${insideTransaction}
      on conflict (provider, endpoint, event_id) do update set
        processed_at = now(), outcome = 'processed', last_error = null,
        fence = ${inbox.fence} + 1
      where ${inbox.fence} = ${fence}::bigint and ${unsettled}
      returning fence
    )
    select 1 / count(*) from marked where fence > 0`,
);

/** Claimed events as they are, and of each its payload as text, or null, as `markAll` returns it. */
export function readClaimed(claims: readonly Claim[], longest: number): Write {
  return sql`
    select ${inbox.endpoint}, ${inbox.eventId}, payload_altered, ${storedUpTo(longest)}
    from ${inbox}, ${listed(claims)}
    where ${isHeld}`;
}

/**
 * Claimed events as settled, and of each its payload as text; null where it is longer than
 * `longest` characters. No row of what is ours no longer.
 */
export function markAll(claims: readonly Claim[], longest: number): Write {
  return sql`
    update ${inbox} set processed_at = now(), outcome = 'processed', last_error = null,
      fence = ${inbox.fence} + 1
    from ${listed(claims)}
    where ${isHeld} and ${insideTransaction}
    returning ${inbox.endpoint}, ${inbox.eventId}, payload_altered, ${storedUpTo(longest)}`;
}

/** Once as text, and not once to measure and once to have it. */
function storedUpTo(longest: number): SQL {
  return sql`(select case when length(text) <= ${longest}::int then text end
    from (select payload::text as text offset 0) as payload) as stored`;
}

/** Within the transaction that marked them: claimed as they were before, and nothing else. */
export function unmark(claims: readonly Claim[]): Write {
  return sql`
    update ${inbox} set processed_at = null, outcome = null, fence = listed.fence
    from ${listed(claims)} where ${isListed}`;
}

/**
 * The row, if it is new, as unsettled. With a lease its insert is its first claim; without one it
 * is due at once.
 *
 * A conflict is looked for first: `on conflict do nothing` would wait for whoever is processing the
 * row, and is there for two first deliveries at the same time.
 */
export function store(delivery: Delivery, leaseSeconds: number | null): Write {
  const attempts = leaseSeconds === null ? 0 : 1;
  return storing({ ...receivedOf(delivery), attempts, leaseSeconds });
}

const storing = template<Received & { attempts: number; leaseSeconds: number | null }>(
  ({ attempts, leaseSeconds, ...received }) => sql`
    insert into ${inbox} (endpoint, event_id, event_type, object_id, payload, payload_altered,
      attempts, available_at)
    select ${receivedColumns(received)}, ${attempts}::int,
      coalesce(${leaseEnd(leaseSeconds)}, now())
    where not exists (select from ${inbox}
        where ${matches({ endpoint: received.endpoint, eventId: received.id })})
      and ${insideTransaction}
    on conflict (provider, endpoint, event_id) do nothing
    returning fence::int as fence`,
);

/**
 * At most `limit` due events, the longest due first, as ours for the length of a lease. The attempt
 * is counted now, and the record of the one before cleared, so that a crash counts and shows.
 *
 * The CTE is a fence for the planner: inlined into a nested loop, its SELECT could run again for
 * every row and claim more than the limit. It returns keys and no payload: one that cannot be read
 * must not roll back the claim of its neighbours.
 *
 * @param which `suspects` are events whose last attempt left no record: it may have killed the
 * Worker that made it. All others are `fresh`.
 */
export function claimDue(which: "fresh" | "suspects", limit: number, leaseSeconds: number): Write {
  const suspicion = sql`${inbox.attempts} > 0 and ${inbox.lastError} is null`;
  return sql`
    with picked as materialized (
      select provider, endpoint, event_id from ${inbox}
      where ${unsettled} and ${inbox.availableAt} <= now()
        and ${which === "suspects" ? suspicion : sql`not (${suspicion})`}
      order by ${inbox.availableAt} limit ${limit} for update skip locked
    )
    update ${inbox} set attempts = ${inbox.attempts} + 1, fence = ${inbox.fence} + 1,
      last_error = null, available_at = ${leaseEnd(leaseSeconds)}
    from picked where ${sameKey("picked")} and ${insideTransaction}
    returning ${inbox.endpoint}, ${inbox.eventId}, ${inbox.fence}::int as fence, attempts`;
}

/**
 * Claims that nobody came to: their attempts do not count, and they are due again at once. A row
 * that somebody holds is left to the end of its lease.
 */
export function release(claims: readonly Claim[]): Write {
  return sql`
    with unstarted as materialized (
      select provider, ${inbox.endpoint}, ${inbox.eventId} from ${inbox}, ${listed(claims)}
      where ${isHeld}
      for update of ${inbox} skip locked
    )
    update ${inbox} set attempts = ${inbox.attempts} - 1, fence = ${inbox.fence} + 1,
      last_error = 'Released', available_at = now()
    from unstarted where ${sameKey("unstarted")} and ${insideTransaction}`;
}

/** A claimed event as settled, and its payload as text; no row when it is ours no longer. */
export function mark({ endpoint, eventId, fence }: Claim): Write {
  return marking({ endpoint, eventId, fence });
}

const marking = template<Claim>(
  (claim) => sql`${settledIfHeld(claim)} returning payload::text as stored, payload_altered`,
);

function settledIfHeld({ fence, ...key }: Places<Claim>): SQL {
  return sql`update ${inbox} set processed_at = now(), outcome = 'processed', last_error = null,
      fence = ${inbox.fence} + 1
    where ${matches(key)} and ${inbox.fence} = ${fence}::bigint and ${unsettledStill}
      and ${insideTransaction}`;
}

/** The failure of a claimed attempt, which its claim has counted. */
export function recordClaimedFailure(claim: Claim, failure: FailureRecord): Write {
  const attempts = failure.parksAtAttempt === null ? sql`${inbox.attempts} - 1` : inbox.attempts;
  return sql`
    update ${inbox} set attempts = ${attempts}, last_error = ${failure.code},
      fence = ${inbox.fence} + 1, available_at = ${nextAttemptAt(sql`${attempts}`, failure)},
      parked_at = ${parkedAt(sql`${attempts}`, failure)}
    where ${matches(claim)} and ${inbox.fence} = ${claim.fence} and ${unsettledStill}
      and ${insideTransaction}
    returning parked_at is not null as parked`;
}

/**
 * Parks the events whose last allowed attempt crashed: lease over, attempts used up, no record.
 * A row that somebody holds is not waited for: that is no crash.
 */
export function parkCrashed(maxAttempts: number): Write {
  return sql`
    with crashed as materialized (
      select provider, endpoint, event_id from ${inbox}
      where ${unsettled} and ${inbox.availableAt} <= now() and ${inbox.lastError} is null
        and ${inbox.attempts} >= ${maxAttempts}::int
      for update skip locked
    )
    update ${inbox} set parked_at = now(), last_error = 'Crashed', fence = ${inbox.fence} + 1
    from crashed where ${sameKey("crashed")} and ${insideTransaction}
    returning 1`;
}

/**
 * The failure of an attempt, on a row that is new or still unsettled: counted, with a back-off of
 * full jitter before the next attempt, and parked when that was the last.
 */
export function recordFailure(delivery: Delivery, failure: FailureRecord): Write {
  const counted = failure.parksAtAttempt === null ? 0 : 1;
  const first = sql`${counted}::int`;
  const next = sql`${inbox.attempts} + ${counted}::int`;
  return sql`
    insert into ${inbox} (endpoint, event_id, event_type, object_id, payload, payload_altered,
      attempts, last_error, available_at, parked_at)
    select ${receivedColumns(receivedOf(delivery))}, ${first}, ${failure.code}::text,
      ${within(sql`2`, failure)}, ${parkedAt(first, failure)}
    where ${insideTransaction}
    on conflict (provider, endpoint, event_id) do update set
      attempts = ${next}, fence = ${inbox.fence} + 1, last_error = excluded.last_error,
      available_at = ${nextAttemptAt(next, failure)}, parked_at = ${parkedAt(next, failure)}
    where ${unsettled}
    returning parked_at is not null as parked`;
}

/**
 * Parked and ignored events as new, at most so many, the oldest first: no attempts, due at once.
 * Whoever still works on one holds an older fence. One whose payload is gone stays as it is. One
 * that somebody works on is waited for: to be skipped, it would have to come again.
 */
export function requeue(selection: Selection, most: number): Write {
  return sql`
    with picked as materialized (
      select provider, endpoint, event_id from ${inbox} where ${isSelected(selection)}
      order by received_at, endpoint, event_id limit ${most}::int for update
    )
    update ${inbox} set attempts = 0, fence = ${inbox.fence} + 1, available_at = now(),
      last_error = null, parked_at = null, processed_at = null, outcome = null,
      ignored_reason = null
    from picked where ${sameKey("picked")} and ${insideTransaction}
    returning ${inbox.endpoint}, ${inbox.eventId}`;
}

/** What the row is now: `settled`, `parked`, or neither; no row when there is none. */
export function readState({ endpoint, eventId }: Key): Write {
  return readingState({ endpoint, eventId });
}

const readingState = template<Key>(
  (key) => sql`select processed_at is not null as settled, parked_at is not null as parked
    from ${inbox} where ${matches(key)}`,
);

export function readUnsettledOf(objectId: string): Write {
  return sql`select event_id, parked_at is not null as parked from ${inbox}
    where ${inbox.objectId} = ${objectId} and ${inbox.processedAt} is null limit 1`;
}

/** A delivery that found nothing left to do. */
export function countDuplicate({ endpoint, eventId }: Key): Write {
  return countingDuplicate({ endpoint, eventId });
}

const countingDuplicate = template<Key>(
  (key) => sql`update ${inbox} set duplicates = duplicates + 1
    where ${matches(key)} and ${insideTransaction}`,
);

export function keyOf({ endpoint, event }: Delivery): Key {
  return { endpoint: endpoint.name, eventId: event.id };
}

function matches({ endpoint, eventId }: Places<Key>): SQL {
  return sql`${inbox.provider} = 'stripe' and ${inbox.endpoint} = ${endpoint}
    and ${inbox.eventId} = ${eventId}`;
}

function sameKey(picked: "picked" | "crashed" | "unstarted"): SQL {
  return sql`(${inbox.provider}, ${inbox.endpoint}, ${inbox.eventId}) =
    (${sql.raw(`${picked}.provider, ${picked}.endpoint, ${picked}.event_id`)})`;
}

/** As a table; one parameter, so that the statement is the same for any number of them. */
function listed(claims: readonly Claim[]): SQL {
  const rows = claims.map(({ endpoint, eventId, fence }) => ({
    endpoint,
    event_id: eventId,
    fence,
  }));
  return sql`jsonb_to_recordset(${JSON.stringify(rows)}::text::jsonb) as listed
    (endpoint text, event_id text, fence bigint)`;
}

const isListed = sql`${inbox.provider} = 'stripe' and ${inbox.endpoint} = listed.endpoint
  and ${inbox.eventId} = listed.event_id`;

const isHeld = sql`${isListed} and ${inbox.fence} = listed.fence and ${unsettledStill}`;

/** From now on, not from the start of a transaction that may have begun long ago; null without one. */
function leaseEnd(leaseSeconds: number | null | Placeholder): SQL {
  return sql`clock_timestamp() + ${leaseSeconds}::int * interval '1 second'`;
}

/**
 * Full jitter below a bound that doubles with each attempt, in seconds. Failures that do not count
 * have no attempts to go by: their bound is the age of the event.
 */
function nextAttemptAt(attempts: SQL, failure: FailureRecord): SQL {
  return failure.parksAtAttempt === null
    ? within(sql`greatest(2, extract(epoch from now() - ${inbox.receivedAt}))`, failure)
    : within(sql`2 ^ least(${attempts}, 30)`, failure);
}

function within(seconds: SQL, { backoffCapSeconds }: FailureRecord): SQL {
  return sql`now() + least(${backoffCapSeconds}::int, ${seconds}) * random() * interval '1 second'`;
}

function parkedAt(attempts: SQL, { parksAtAttempt }: FailureRecord): SQL {
  return sql`case when ${attempts} >= ${parksAtAttempt}::int then now() end`;
}

type Received = ReturnType<typeof receivedOf>;

function receivedOf({ endpoint, event }: Delivery) {
  const { id, type, objectId, json, altered } = event;
  return { endpoint: endpoint.name, id, type, objectId, json, altered };
}

function receivedColumns({ endpoint, id, type, objectId, json, altered }: Places<Received>): SQL {
  return sql`${endpoint}::text, ${id}::text, ${type}::text, ${objectId}::text,
    ${json}::text::jsonb, ${altered}::boolean`;
}

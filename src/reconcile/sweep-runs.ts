/**
 * Every change of a sweep's row, one statement each. Of each account only one sweep is under way,
 * which a unique index decides. Who walks under a lease changes the row only while its fence is
 * the one that was claimed.
 */
import { type SQL, sql } from "drizzle-orm";
import type { Write } from "../db/connect.ts";
import { sweepGaps as gaps, sweepRuns as runs } from "../db/schema.ts";
import { insideTransaction } from "../db/transaction.ts";

/** The account of the key itself, among those that a sweep may walk. */
export const OWN_ACCOUNT = "own";

/** A walk that is ours to go on with, until the lease ends. */
export interface ClaimedRun {
  readonly id: number;
  readonly fence: number;
  readonly account: string;
  /** Seconds since 1970. */
  readonly windowFrom: number;
  readonly windowTo: number;
  readonly cursor: string | null;
  /** Whether the last one who was at work on a page left no record of it. */
  readonly crashed: boolean;
}

/** How far back a sweep looks. */
export interface Reach {
  readonly intervalMinutes: number;
  readonly days: number;
  /** Nothing that was created before is ours; null: whatever Stripe still lists is. */
  readonly since: Date | null;
}

/** What a page brought. */
export interface PageCounts {
  readonly events: number;
  readonly missing: number;
  readonly unusable: number;
  /** The last event of the page; null: it was the last page. */
  readonly cursor: string | null;
}

/** Younger events may still be on their way. */
export const YOUNGEST_MINUTES = 15;
/** An event can appear in the list later than `created` says. */
const OVERLAP_MINUTES = 60;

const CRASHED = "Crashed";

const minutes = (number: number): SQL => sql`${number}::int * interval '1 minute'`;
const oldest = (days: number): SQL => sql`now() - ${days}::int * interval '1 day'`;
const sinceOf = (since: Date | null): SQL => sql`${since?.toISOString() ?? null}::timestamptz`;
const newest = sql`now() - ${minutes(YOUNGEST_MINUTES)}`;

/**
 * A new walk for each account whose last one began an interval ago, and which has none under way:
 * from where that one ended, or as far back as the reach goes.
 */
export function beginRuns(
  accounts: readonly string[],
  { intervalMinutes, days, since }: Reach,
): Write {
  const from = sql`greatest(${oldest(days)}, last.window_to - ${minutes(OVERLAP_MINUTES)},
    ${sinceOf(since)})`;
  return sql`
    insert into ${runs} (account, window_from, window_to)
    select walked.account, ${from}, ${newest}
    from ${asTable(accounts)}
    left join lateral (
      select window_to, started_at from ${runs}
      where ${runs.account} = walked.account and ${runs.completedAt} is not null
      order by window_to desc limit 1
    ) as last on true
    where coalesce(last.started_at <= now() - ${minutes(intervalMinutes)}, true)
      and not exists (select from ${runs}
        where ${runs.account} = walked.account and ${runs.completedAt} is null)
      and ${from} < ${newest} and ${insideTransaction}
    on conflict (account) where completed_at is null do nothing
    returning 1`;
}

/**
 * A walk from `since` on, of one account, at once; one that is under way begins anew. It leaves no
 * hole behind the last complete one: what it has seen is taken as seen by those that follow.
 */
export function requestRun(account: string, since: Date): Write {
  const from = sql`${since.toISOString()}::timestamptz`;
  return sql`
    insert into ${runs} (account, window_from, window_to)
    select ${account}::text, least(${from}, coalesce(
        (select max(window_to) from ${runs}
          where ${runs.account} = ${account} and ${runs.completedAt} is not null)
          - ${minutes(OVERLAP_MINUTES)},
        now() - interval '30 days')), ${newest}
    where ${from} < ${newest} and ${insideTransaction}
    on conflict (account) where completed_at is null do update set
      window_from = least(${runs.windowFrom}, excluded.window_from), window_to = excluded.window_to,
      cursor = null, available_at = now(), fence = ${runs.fence} + 1
    returning 1`;
}

/** Whether any walk of the account is on record. */
export function isKnown(account: string): Write {
  return sql`select from ${runs} where ${runs.account} = ${account} limit 1`;
}

/**
 * One walk that may go on, the longest due first, as ours; its window never wider than the reach.
 * A page that was begun and left no record may have ended the Worker: it shows, and counts.
 */
export function claimRun(
  accounts: readonly string[],
  { days, since }: Reach,
  leaseSeconds: number,
): Write {
  const crashed = sql`${runs.claimedAt} is not null`;
  return sql`
    with picked as materialized (
      select id from ${runs}
      where ${runs.completedAt} is null and ${runs.availableAt} <= now()
        and ${runs.account} in (select account from ${asTable(accounts)})
      order by ${runs.availableAt} limit 1 for update skip locked
    )
    update ${runs} set fence = ${runs.fence} + 1, available_at = ${leaseEnd(leaseSeconds)},
      claimed_at = now(), failures = ${runs.failures} + (${crashed})::int,
      last_error = case when ${crashed} then ${CRASHED} else ${runs.lastError} end
    from picked where ${runs.id} = picked.id and ${insideTransaction}
    returning ${runs.id}::int as id, ${runs.fence}::int as fence, ${runs.account}, ${runs.cursor},
      ${runs.lastError} is not distinct from ${CRASHED} as crashed,
      extract(epoch from greatest(${runs.windowFrom}, ${oldest(days)}, ${sinceOf(since)}))::int
        as window_from,
      extract(epoch from ${runs.windowTo})::int as window_to`;
}

/** A page as seen, and the lease renewed, or the walk at its end. */
export function recordPage(run: ClaimedRun, page: PageCounts, leaseSeconds: number): Write {
  return sql`
    update ${runs} set pages = ${runs.pages} + 1, events = ${runs.events} + ${page.events}::int,
      missing = ${runs.missing} + ${page.missing}::int,
      unusable = ${runs.unusable} + ${page.unusable}::int, failures = 0, last_error = null,
      cursor = coalesce(${page.cursor}::text, ${runs.cursor}),
      completed_at = case when ${page.cursor}::text is null then now() end,
      claimed_at = case when ${page.cursor}::text is not null then now() end,
      available_at = ${leaseEnd(leaseSeconds)}
    where ${isHeldBy(run)} and ${insideTransaction}
    returning 1`;
}

/** Nobody walks on for now; whoever comes next goes on from the last page that was recorded. */
export function releaseRun(run: ClaimedRun): Write {
  return sql`update ${runs} set available_at = now(), claimed_at = null, fence = ${runs.fence} + 1
    where ${isHeldBy(run)} and ${insideTransaction}`;
}

export interface SweepFailure {
  /** An error's class or code. */
  readonly code: string;
  /** Stripe wants to be left alone for so long, at least. */
  readonly retryAfterSeconds: number;
  readonly backoffCapSeconds: number;
  /** The walk begins anew: Stripe refuses the event behind which it should go on. */
  readonly fromTheStart: boolean;
}

/** A page that could not be had: tried again after a back-off with full jitter. */
export function recordSweepFailure(run: ClaimedRun, failure: SweepFailure): Write {
  const { code, retryAfterSeconds, backoffCapSeconds, fromTheStart } = failure;
  return sql`
    update ${runs} set failures = ${runs.failures} + 1, last_error = ${code}, claimed_at = null,
      cursor = case when ${fromTheStart}::boolean then null else ${runs.cursor} end,
      fence = ${runs.fence} + 1,
      available_at = now() + interval '1 second' * greatest(${retryAfterSeconds}::int,
        least(${backoffCapSeconds}::int, 2 ^ least(${runs.failures} + 1, 30)) * random())
    where ${isHeldBy(run)} and ${insideTransaction}`;
}

/**
 * The gap that an event was, if `stored` wrote its row: the statement returns no row when the event
 * had come in the meantime.
 */
export function recordGap(
  stored: Write,
  gap: { readonly endpoint: string; readonly event: { id: string; type: string; created: number } },
  run: ClaimedRun,
): Write {
  const { endpoint, event } = gap;
  return sql`
    with stored as (${stored})
    insert into ${gaps} (endpoint, event_id, event_type, created_at, run_id)
    select ${endpoint}::text, ${event.id}::text, ${event.type}::text,
      to_timestamp(${event.created}::int8), ${run.id}::bigint
    from stored
    on conflict (endpoint, event_id) do nothing
    returning endpoint, event_id, event_type,
      extract(epoch from found_at - created_at)::int8::text as late_seconds`;
}

/**
 * For each account, when the time began that no complete sweep has seen, if that is so many days
 * ago.
 */
export function overdueAccounts(accounts: readonly string[], days: number): Write {
  return sql`
    select account, extract(epoch from now() - unseen)::int / 86400 as days, error from (
      select walked.account, (select last_error from ${runs}
          where ${runs.account} = walked.account and ${runs.completedAt} is null) as error,
        coalesce(
          (select max(window_to) from ${runs}
            where ${runs.account} = walked.account and ${runs.completedAt} is not null),
          (select min(started_at) from ${runs} where ${runs.account} = walked.account)) as unseen
      from ${asTable(accounts)}) as seen
    where unseen < now() - ${days}::int * interval '1 day'`;
}

function asTable(accounts: readonly string[]): SQL {
  return sql`unnest(${sql.param([...accounts])}::text[]) as walked(account)`;
}

function isHeldBy({ id, fence }: ClaimedRun): SQL {
  return sql`${runs.id} = ${id} and ${runs.fence} = ${fence} and ${runs.completedAt} is null`;
}

function leaseEnd(leaseSeconds: number): SQL {
  return sql`clock_timestamp() + ${leaseSeconds}::int * interval '1 second'`;
}

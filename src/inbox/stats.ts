/**
 * What waits and what needs review, now. Read from partial indexes that hold nothing else, and
 * counted up to a bound, from the oldest on: fast on millions of rows, also of those that wait.
 */
import { sql } from "drizzle-orm";
import type { Row, Write } from "../db/connect.ts";
import { type Count, MOST_COUNTED, numberOf, textOf, textOrNull, toCount } from "../db/rows.ts";
import { webhookInbox as inbox } from "../db/schema.ts";
import { parkedReasons } from "./partitions.ts";
import { unsettled } from "./transitions.ts";

export interface InboxState {
  /** Neither settled nor parked. */
  readonly waiting: Count;
  /** Since the oldest of them was received, or requeued; null when none waits. */
  readonly oldestWaitingSeconds: number | null;
  /** Of the oldest 5,000, by what their last attempt failed with; null: none has failed. */
  readonly waitingByReason: readonly {
    readonly reason: string | null;
    readonly events: number;
    readonly oldestSeconds: number;
  }[];
  readonly needsReview: Count;
  readonly needsReviewByReason: readonly ReviewReason[];
}

export interface ReviewReason {
  readonly reason: string;
  readonly events: Count;
  /** Since the oldest of them was received. */
  readonly oldestSeconds: number;
}

/** Of those that wait, so many are asked for their reason. */
const ASKED_FOR_REASON = 5_000;
/** Of one reason. There may be some ten of them. */
export const MOST_OF_A_REASON = 5_000;

/**
 * One that was requeued waits from then on, until an attempt has failed. While somebody has claimed
 * it, the end of the lease is all that is known, and it is being worked on: it has no age.
 */
const since = sql`case when attempts <= 1 and fence > attempts and last_error is null
  then greatest(received_at, least(available_at, now())) else received_at end`;

export const stateStatements: readonly Write[] = [
  sql`select count(*)::int as events from (
      select from ${inbox} where ${unsettled}
      order by received_at limit ${MOST_COUNTED + 1}) as counted`,
  sql`select last_error as reason, count(*)::int as events,
      extract(epoch from now() - min(since))::float8 as seconds
    from (
      select last_error, ${since} as since from ${inbox} where ${unsettled}
      order by received_at limit ${ASKED_FOR_REASON}) as oldest
    group by 1 order by 2 desc, 1`,
  sql`with recursive ${parkedReasons}
    select reason, counted.events, oldest.seconds
    from reasons
      cross join lateral (select count(*)::int as events from (
        select from ${inbox} where parked_at is not null and last_error = reason
        order by received_at limit ${MOST_OF_A_REASON + 1}) as parked) as counted
      cross join lateral (select extract(epoch from now() - received_at)::float8 as seconds
        from ${inbox} where parked_at is not null and last_error = reason
        order by received_at limit 1) as oldest
    order by 2 desc, 1`,
];

export function readState([waiting, reasons, parked]: readonly (readonly Row[])[]): InboxState {
  const waitingByReason = (reasons ?? []).map((row) => ({
    reason: textOrNull(row, "reason"),
    events: numberOf(row, "events"),
    oldestSeconds: numberOf(row, "seconds"),
  }));
  const needsReviewByReason = (parked ?? []).map((row) => ({
    reason: textOf(row, "reason"),
    events: toCount(row["events"], MOST_OF_A_REASON),
    oldestSeconds: numberOf(row, "seconds"),
  }));
  return {
    waiting: toCount(waiting?.[0]?.["events"]),
    oldestWaitingSeconds:
      waitingByReason.length === 0
        ? null
        : Math.max(...waitingByReason.map(({ oldestSeconds }) => oldestSeconds)),
    waitingByReason,
    needsReview: {
      count: needsReviewByReason.reduce((sum, { events }) => sum + events.count, 0),
      more: needsReviewByReason.some(({ events }) => events.more),
    },
    needsReviewByReason,
  };
}

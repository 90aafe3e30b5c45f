/**
 * What tells a person whether messages leave, and whether what follows from them happens. Each
 * figure is read from a partial index that holds only what it counts, up to a bound.
 */
import { sql } from "drizzle-orm";
import type { Row, Write } from "../db/connect.ts";
import { type Count, MOST_COUNTED, numberOrNull, textOf, toCount } from "../db/rows.ts";
import { callJournal as journal, outbox } from "../db/schema.ts";

export interface OutboxState {
  /** Messages that have not left and are not parked. Where no queue is bound, all of them. */
  readonly waiting: Count;
  readonly oldestWaitingSeconds: number | null;
  /** Messages that have left and are not known to be done; those that need review are not counted. */
  readonly notDone: Count;
  readonly oldestNotDoneSeconds: number | null;
  /** Messages that could not be sent, and block those behind them. */
  readonly messagesInReview: readonly Reason[];
  /** Calls that a person must look at. */
  readonly callsInReview: readonly Reason[];
}

export interface Reason {
  readonly reason: string;
  readonly count: number;
}

const waits = sql`published_at is null and parked_at is null`;
/** It has left; a call that needs review is a person's. */
export const isNotDone = sql`published_at is not null and done_at is null
  and id not in (select message_id from ${journal} where state = 'parked')`;

export const outboxStatements: readonly Write[] = [
  sql`select
      (select count(*)::int from (
        select from ${outbox} where ${waits} limit ${MOST_COUNTED + 1}) as counted) as count,
      (select extract(epoch from now() - min(created_at))::float8
        from ${outbox} where ${waits}) as seconds`,
  sql`select
      (select count(*)::int from (
        select from ${outbox} where ${isNotDone} limit ${MOST_COUNTED + 1}) as counted) as count,
      (select extract(epoch from now() - published_at)::float8 from ${outbox} where ${isNotDone}
        order by published_at limit 1) as seconds`,
  sql`select last_error as reason, count(*)::int as count from (
      select last_error from ${outbox} where parked_at is not null limit ${MOST_COUNTED}) as parked
    group by 1 order by 2 desc, 1`,
  sql`select last_error as reason, count(*)::int as count from (
      select last_error from ${journal} where state = 'parked' limit ${MOST_COUNTED}) as parked
    group by 1 order by 2 desc, 1`,
];

export function readOutbox([
  waiting,
  notDone,
  messages,
  calls,
]: readonly (readonly Row[])[]): OutboxState {
  return {
    waiting: toCount(waiting?.[0]?.["count"]),
    oldestWaitingSeconds: numberOrNull(waiting?.[0], "seconds"),
    notDone: toCount(notDone?.[0]?.["count"]),
    oldestNotDoneSeconds: numberOrNull(notDone?.[0], "seconds"),
    messagesInReview: (messages ?? []).map(toReason),
    callsInReview: (calls ?? []).map(toReason),
  };
}

function toReason(row: Row): Reason {
  return { reason: textOf(row, "reason"), count: Number(row["count"]) };
}

/**
 * What tells a person whether messages leave, and whether what follows from them happens. Each
 * figure is read from a partial index that holds only what it counts.
 */
import { sql } from "drizzle-orm";
import type { Connection, Row } from "../db/connect.ts";
import { callJournal as journal, outbox } from "../db/schema.ts";
import { type Timeouts, inOneFlight } from "../db/transaction.ts";

export interface OutboxStats {
  /** Messages that have not left and are not parked. Where no queue is bound, all of them. */
  readonly waiting: number;
  readonly oldestWaitingSeconds: number | null;
  /** Messages that have left, and whose consequence is not known to have happened. */
  readonly notDone: number;
  readonly oldestNotDoneSeconds: number | null;
  /** Messages that could not be sent, and block those behind them. */
  readonly messagesInReview: readonly Reason[];
  /** Calls that a person must look at. */
  readonly callsInReview: readonly Reason[];
}

interface Reason {
  readonly reason: string;
  readonly count: number;
}

/** One round trip. */
export async function readOutboxStats(db: Connection, timeouts: Timeouts): Promise<OutboxStats> {
  const [waiting, notDone, messages, calls] = await inOneFlight(db, timeouts, [
    sql`select count(*)::int as count,
        extract(epoch from now() - min(${outbox.createdAt}))::float8 as seconds
      from ${outbox} where ${outbox.publishedAt} is null and ${outbox.parkedAt} is null`,
    sql`select count(*)::int as count,
        extract(epoch from now() - min(${outbox.publishedAt}))::float8 as seconds
      from ${outbox} where ${outbox.publishedAt} is not null and ${outbox.doneAt} is null`,
    sql`select ${outbox.lastError} as reason, count(*)::int as count
      from ${outbox} where ${outbox.parkedAt} is not null group by 1 order by 2 desc, 1`,
    sql`select ${journal.lastError} as reason, count(*)::int as count
      from ${journal} where ${journal.state} = 'parked' group by 1 order by 2 desc, 1`,
  ]);
  return {
    waiting: Number(waiting?.[0]?.["count"]),
    oldestWaitingSeconds: secondsOf(waiting?.[0]),
    notDone: Number(notDone?.[0]?.["count"]),
    oldestNotDoneSeconds: secondsOf(notDone?.[0]),
    messagesInReview: (messages ?? []).map(toReason),
    callsInReview: (calls ?? []).map(toReason),
  };
}

function secondsOf(row: Row | undefined): number | null {
  const seconds = row?.["seconds"];
  return typeof seconds === "number" ? seconds : null;
}

function toReason(row: Row): Reason {
  return { reason: String(row["reason"]), count: Number(row["count"]) };
}

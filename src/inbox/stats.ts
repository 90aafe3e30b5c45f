/**
 * What tells a person on call whether money events are flowing. Fast on millions of rows: the state
 * of now is read from partial indexes that hold only what waits or is parked; everything about the
 * past is bounded to a window that the BRIN index on `received_at` finds.
 */
import { sql } from "drizzle-orm";
import type { Connection, Row } from "../db/connect.ts";
import { webhookInbox as inbox } from "../db/schema.ts";
import { type Timeouts, inOneFlight } from "../db/transaction.ts";

export interface InboxStats {
  /** Neither settled nor parked. */
  readonly waiting: number;
  /** Since the oldest of them was received; null when none waits. */
  readonly oldestWaitingSeconds: number | null;
  readonly needsReview: number;
  readonly needsReviewByReason: readonly { readonly reason: string; readonly events: number }[];
  readonly ignoredLastDay: readonly { readonly reason: string; readonly events: number }[];
  readonly receivedLastHour: readonly { readonly type: string; readonly events: number }[];
  /** By the hour of receipt, the newest first, of the last day. */
  readonly duplicatesByHour: readonly {
    readonly hour: Date;
    readonly events: number;
    readonly duplicates: number;
    /** Of all deliveries of that hour's events, 0 to 1. */
    readonly share: number;
  }[];
}

/** One round trip. */
export async function readStats(db: Connection, timeouts: Timeouts): Promise<InboxStats> {
  const [waiting, parked, ignored, received, duplicates] = await inOneFlight(db, timeouts, [
    sql`select count(*)::int as events,
        extract(epoch from now() - min(${inbox.receivedAt}))::float8 as seconds
      from ${inbox} where ${inbox.processedAt} is null and ${inbox.parkedAt} is null`,
    sql`select ${inbox.lastError} as label, count(*)::int as events
      from ${inbox} where ${inbox.parkedAt} is not null group by 1 order by 2 desc, 1`,
    sql`select ${inbox.ignoredReason} as label, count(*)::int as events
      from ${inbox} where ${inbox.receivedAt} > now() - interval '1 day'
        and ${inbox.outcome} = 'ignored' group by 1 order by 2 desc, 1`,
    sql`select ${inbox.eventType} as label, count(*)::int as events
      from ${inbox} where ${inbox.receivedAt} > now() - interval '1 hour'
      group by 1 order by 2 desc, 1`,
    sql`select date_trunc('hour', ${inbox.receivedAt}) as hour, count(*)::int as events,
        sum(${inbox.duplicates})::int as duplicates
      from ${inbox} where ${inbox.receivedAt} > now() - interval '1 day'
      group by 1 order by 1 desc`,
  ]);
  const needsReviewByReason = counted(parked).map(({ label, events }) => ({
    reason: label,
    events,
  }));
  const seconds = waiting?.[0]?.["seconds"];
  return {
    waiting: Number(waiting?.[0]?.["events"]),
    oldestWaitingSeconds: typeof seconds === "number" ? seconds : null,
    needsReview: needsReviewByReason.reduce((sum, { events }) => sum + events, 0),
    needsReviewByReason,
    ignoredLastDay: counted(ignored).map(({ label, events }) => ({ reason: label, events })),
    receivedLastHour: counted(received).map(({ label, events }) => ({ type: label, events })),
    duplicatesByHour: (duplicates ?? []).map(toHour),
  };
}

function counted(rows: readonly Row[] = []): { label: string; events: number }[] {
  return rows.map((row) => ({ label: String(row["label"]), events: Number(row["events"]) }));
}

function toHour(row: Row): InboxStats["duplicatesByHour"][number] {
  const events = Number(row["events"]);
  const duplicates = Number(row["duplicates"]);
  return {
    hour: new Date(String(row["hour"])),
    events,
    duplicates,
    share: duplicates / (events + duplicates),
  };
}

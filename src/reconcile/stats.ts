/** What tells a person whether anything was missed, and whether somebody looks. */
import { sql } from "drizzle-orm";
import type { Connection, Row } from "../db/connect.ts";
import { discrepancies, sweepGaps as gaps, sweepRuns as runs } from "../db/schema.ts";
import { type Timeouts, inOneFlight } from "../db/transaction.ts";

export interface ReconciliationStats {
  /** Of each account that was ever swept. */
  readonly sweeps: readonly {
    readonly account: string;
    /** Since the youngest event that a complete sweep has seen; null: none is complete. */
    readonly seenSecondsAgo: number | null;
    /** What keeps the one that is under way; null when nothing does. */
    readonly error: string | null;
  }[];
  /** Events that sweeps found missing, by the endpoint that lacked them. */
  readonly gapsLastDay: readonly { readonly endpoint: string; readonly events: number }[];
  readonly openDiscrepancies: readonly { readonly kind: string; readonly objects: number }[];
}

/** One round trip. */
export async function readReconciliationStats(
  db: Connection,
  timeouts: Timeouts,
): Promise<ReconciliationStats> {
  const [sweeps, missed, open] = await inOneFlight(db, timeouts, [
    sql`select account, max(last_error) filter (where completed_at is null) as error,
        extract(epoch from now() - max(window_to) filter (where completed_at is not null))::float8
          as seconds
      from ${runs} group by 1 order by 1`,
    sql`select endpoint, count(*)::int as count from ${gaps}
      where ${gaps.foundAt} > now() - interval '1 day' group by 1 order by 2 desc, 1`,
    sql`select kind, count(*)::int as count from ${discrepancies}
      where ${discrepancies.resolvedAt} is null group by 1 order by 2 desc, 1`,
  ]);
  return {
    sweeps: (sweeps ?? []).map((row) => ({
      account: String(row["account"]),
      seenSecondsAgo: typeof row["seconds"] === "number" ? row["seconds"] : null,
      error: typeof row["error"] === "string" ? row["error"] : null,
    })),
    gapsLastDay: (missed ?? []).map((row) => ({
      endpoint: String(row["endpoint"]),
      events: countOf(row),
    })),
    openDiscrepancies: (open ?? []).map((row) => ({
      kind: String(row["kind"]),
      objects: countOf(row),
    })),
  };
}

function countOf(row: Row): number {
  return Number(row["count"]);
}

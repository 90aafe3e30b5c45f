/** What tells a person whether anything was missed, and whether somebody looks. */
import { sql } from "drizzle-orm";
import type { Row, Write } from "../db/connect.ts";
import { numberOf, numberOrNull, textOf, textOrNull, timeOrNull } from "../db/rows.ts";
import { discrepancies, sweepGaps as gaps, sweepRuns as runs } from "../db/schema.ts";

export interface Reconciliation {
  /** Of each account that was ever swept. */
  readonly sweeps: readonly AccountSweeps[];
  /** Events that sweeps found missing, by the endpoint that lacked them. */
  readonly gapsLastDay: readonly { readonly endpoint: string; readonly events: number }[];
  readonly openDiscrepancies: readonly {
    readonly kind: string;
    readonly objects: number;
    readonly oldestSeconds: number;
  }[];
}

export interface AccountSweeps {
  readonly account: string;
  readonly completedAt: Date | null;
  /** Since the youngest event that a complete sweep has seen; null: none is complete. */
  readonly seenSecondsAgo: number | null;
  /** Since the first sweep on record began. */
  readonly firstSecondsAgo: number;
  /** What keeps the one that is under way; null when nothing does. */
  readonly error: string | null;
}

export const reconciliationStatements: readonly Write[] = [
  sql`select account, max(last_error) filter (where completed_at is null) as error,
      max(completed_at) as completed_at,
      extract(epoch from now() - min(started_at))::float8 as first_seconds,
      extract(epoch from now() - max(window_to) filter (where completed_at is not null))::float8
        as seconds
    from ${runs} group by 1 order by 1`,
  sql`select endpoint, count(*)::int as count from ${gaps}
    where ${gaps.foundAt} > now() - interval '1 day' group by 1 order by 2 desc, 1`,
  sql`select kind, count(*)::int as count,
      extract(epoch from now() - min(found_at))::float8 as seconds
    from ${discrepancies}
    where ${discrepancies.resolvedAt} is null group by 1 order by 2 desc, 1`,
];

export function readReconciliation([
  sweeps,
  missed,
  open,
]: readonly (readonly Row[])[]): Reconciliation {
  return {
    sweeps: (sweeps ?? []).map((row) => ({
      account: textOf(row, "account"),
      completedAt: timeOrNull(row, "completed_at"),
      seenSecondsAgo: numberOrNull(row, "seconds"),
      firstSecondsAgo: numberOf(row, "first_seconds"),
      error: textOrNull(row, "error"),
    })),
    gapsLastDay: (missed ?? []).map((row) => ({
      endpoint: textOf(row, "endpoint"),
      events: numberOf(row, "count"),
    })),
    openDiscrepancies: (open ?? []).map((row) => ({
      kind: textOf(row, "kind"),
      objects: numberOf(row, "count"),
      oldestSeconds: numberOf(row, "seconds"),
    })),
  };
}

/** Whether what is to run again and again does: the last run of each, by its name. */
import { sql } from "drizzle-orm";
import type { Connection, Row, Write } from "../db/connect.ts";
import { numberOf, numberOrNull, textOf, timeOf, timeOrNull } from "../db/rows.ts";
import { heartbeats } from "../db/schema.ts";
import { inOneFlight, insideTransaction, type Timeouts } from "../db/transaction.ts";

/** A tick of each minute, and the nightly one. */
export type Run = "tick" | "retention";

export interface Heartbeat {
  readonly startedAt: Date;
  readonly startedSecondsAgo: number;
  /** When the last run ended that did not fail; null: none has. */
  readonly completedAt: Date | null;
  readonly completedSecondsAgo: number | null;
  /** Counts of the last run that ended, or the code of its error. */
  readonly detail: unknown;
}

export type Heartbeats = Readonly<Record<Run, Heartbeat | null>>;

export async function recordStart(db: Connection, run: Run, timeouts: Timeouts): Promise<void> {
  await inOneFlight(db, timeouts, [
    sql`insert into ${heartbeats} (name, started_at)
      select ${run}::text, now() where ${insideTransaction}
      on conflict (name) do update set started_at = excluded.started_at`,
  ]);
}

/** @param failed whether the run failed: then it is not complete, and the detail says why. */
export function recordEnd(run: Run, failed: boolean, detail: object): Write {
  const completed = failed ? sql`${heartbeats.completedAt}` : sql`now()`;
  return sql`
    insert into ${heartbeats} (name, started_at, completed_at, detail)
    select ${run}::text, now(), case when ${failed}::boolean then null else now() end,
      ${JSON.stringify(detail)}::text::jsonb
    where ${insideTransaction}
    on conflict (name) do update set completed_at = ${completed}, detail = excluded.detail`;
}

export const heartbeatStatements: readonly Write[] = [
  sql`select name, started_at, completed_at, detail,
      extract(epoch from now() - started_at)::float8 as started_seconds,
      extract(epoch from now() - completed_at)::float8 as completed_seconds
    from ${heartbeats} where name in ('tick', 'retention')`,
];

export function readHeartbeats([rows = []]: readonly (readonly Row[])[]): Heartbeats {
  const of = (run: Run): Heartbeat | null => {
    const row = rows.find((one) => textOf(one, "name") === run);
    return row ? toHeartbeat(row) : null;
  };
  return { tick: of("tick"), retention: of("retention") };
}

function toHeartbeat(row: Row): Heartbeat {
  return {
    startedAt: timeOf(row, "started_at"),
    startedSecondsAgo: numberOf(row, "started_seconds"),
    completedAt: timeOrNull(row, "completed_at"),
    completedSecondsAgo: numberOrNull(row, "completed_seconds"),
    detail: row["detail"],
  };
}

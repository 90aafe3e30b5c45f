/** What a person has just done, from its record: for the page where one goes on. */
import { sql } from "drizzle-orm";
import type { Connection } from "../db/connect.ts";
import { numberOf, textOf, timeOf } from "../db/rows.ts";
import { operatorActions } from "../db/schema.ts";
import { inOneFlight, type Timeouts } from "../db/transaction.ts";

/** What a person has just done: one record, or those of some batches. */
export interface DoneRecord {
  readonly action: (typeof operatorActions.$inferSelect)["action"];
  readonly subject: string;
  readonly why: string;
  readonly affected: number;
  readonly at: Date;
  readonly records: readonly [number, number];
}

/** A page is read again for so long; a button is pressed twice within the other. */
const MINUTES = { seen: 15, pressed: 1 };

/**
 * What this operator has just done.
 *
 * @param which the first and the last of its records; or upon what it was done, and why.
 * @returns null when it was nothing, or another one.
 */
export async function readDone(
  db: Connection,
  operator: string,
  which: readonly [number, number] | { readonly subject: string; readonly why: string },
  timeouts: Timeouts,
): Promise<DoneRecord | null> {
  const minutes = "why" in which ? MINUTES.pressed : MINUTES.seen;
  // Batches of one order end within ten seconds.
  const meant =
    "why" in which
      ? sql`subject = ${which.subject} and why = ${which.why} and at > (
          select max(at) from ${operatorActions} where operator = ${operator}
            and subject = ${which.subject} and why = ${which.why}) - interval '10 seconds'`
      : sql`id between ${which[0]}::bigint and ${which[1]}::bigint`;
  const [[row] = []] = await inOneFlight(db, timeouts, [
    sql`select action, subject, why, sum(affected)::int as affected, max(at) as at,
        min(id)::float8 as first, max(id)::float8 as last
      from ${operatorActions}
      where operator = ${operator} and ${meant}
        -- The newest alone: no index has them by time.
        and id > (select max(id) from ${operatorActions}) - 10000
        and at > now() - ${minutes}::int * interval '1 minute'
      group by action, subject, why order by max(id) desc limit 1`,
  ]);
  if (!row) return null;
  const action = operatorActions.action.enumValues.find((one) => one === row["action"]);
  if (!action) throw new Error("Bug! A CHECK says which actions there are.");
  return {
    action,
    subject: textOf(row, "subject"),
    why: textOf(row, "why"),
    affected: numberOf(row, "affected"),
    at: timeOf(row, "at"),
    records: [numberOf(row, "first"), numberOf(row, "last")],
  };
}

/** Forgets sweeps and the gaps they found, a bounded batch a call; never the last sweep of an account. */
import { sql } from "drizzle-orm";
import type { Connection } from "../db/connect.ts";
import { sweepGaps as gaps, sweepRuns as runs } from "../db/schema.ts";
import { type Timeouts, inOneFlight, insideTransaction } from "../db/transaction.ts";

const BATCH = 1_000;

/** @returns how many gaps were forgotten, found more than so many days ago. */
export async function deleteGaps(
  db: Connection,
  days: number,
  timeouts: Timeouts,
): Promise<number> {
  const remove = sql`
    with old as materialized (
      select endpoint, event_id from ${gaps}
      where ${gaps.foundAt} < now() - ${days}::int * interval '1 day'
      order by ${gaps.foundAt} limit ${BATCH} for update skip locked
    )
    delete from ${gaps} using old
    where (${gaps.endpoint}, ${gaps.eventId}) = (old.endpoint, old.event_id) and ${insideTransaction}
    returning 1`;
  const [removed = []] = await inOneFlight(db, timeouts, [remove]);
  return removed.length;
}

/**
 * The next sweep of an account begins where its last complete one ended.
 *
 * @returns how many sweeps were forgotten, complete for more than so many days.
 */
export async function deleteSweeps(
  db: Connection,
  days: number,
  timeouts: Timeouts,
): Promise<number> {
  const remove = sql`
    with old as materialized (
      select id from ${runs}
      where ${runs.completedAt} < now() - ${days}::int * interval '1 day' and exists (
        select from ${runs} as later where later.account = ${runs.account}
          and later.completed_at is not null and later.window_to > ${runs.windowTo})
      limit ${BATCH} for update skip locked
    )
    delete from ${runs} using old where ${runs.id} = old.id and ${insideTransaction}
    returning 1`;
  const [removed = []] = await inOneFlight(db, timeouts, [remove]);
  return removed.length;
}

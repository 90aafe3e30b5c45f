/** Deletes messages that have left, a bounded batch a call; never one that is still to leave. */
import { sql } from "drizzle-orm";
import type { Connection } from "../db/connect.ts";
import { outbox } from "../db/schema.ts";
import { type Timeouts, inOneFlight, insideTransaction } from "../db/transaction.ts";

const BATCH = 1_000;

/** @returns how many were deleted, of those published more than so many days ago. */
export async function deletePublished(
  db: Connection,
  days: number,
  timeouts: Timeouts,
): Promise<number> {
  const remove = sql`
    with old as materialized (
      select id from ${outbox}
      where ${outbox.publishedAt} < now() - ${days}::int * interval '1 day'
      order by ${outbox.publishedAt} limit ${BATCH} for update skip locked
    )
    delete from ${outbox} using old
    where ${outbox.id} = old.id and ${outbox.publishedAt} is not null and ${insideTransaction}
    returning 1`;
  const [removed = []] = await inOneFlight(db, timeouts, [remove]);
  return removed.length;
}

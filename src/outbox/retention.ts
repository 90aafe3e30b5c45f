/** Deletes messages and calls that are done, a bounded batch a call; never one that is not. */
import { sql } from "drizzle-orm";
import type { Connection } from "../db/connect.ts";
import { callJournal as journal, outbox } from "../db/schema.ts";
import { type Timeouts, inOneFlight, insideTransaction } from "../db/transaction.ts";

const BATCH = 1_000;

/** @returns how many messages were deleted, of those done more than so many days ago. */
export async function deleteDoneMessages(
  db: Connection,
  days: number,
  timeouts: Timeouts,
): Promise<number> {
  const remove = sql`
    with old as materialized (
      select id from ${outbox}
      where ${outbox.doneAt} < now() - ${days}::int * interval '1 day'
      order by ${outbox.doneAt} limit ${BATCH} for update skip locked
    )
    delete from ${outbox} using old
    where ${outbox.id} = old.id and ${outbox.doneAt} is not null and ${insideTransaction}
    returning 1`;
  const [removed = []] = await inOneFlight(db, timeouts, [remove]);
  return removed.length;
}

/** @returns how many calls were forgotten, of those done more than so many days ago. */
export async function deleteDoneCalls(
  db: Connection,
  days: number,
  timeouts: Timeouts,
): Promise<number> {
  const remove = sql`
    with old as materialized (
      select key from ${journal}
      where ${journal.state} = 'done' and ${journal.doneAt} < now() - ${days}::int * interval '1 day'
      order by ${journal.doneAt} limit ${BATCH} for update skip locked
    )
    delete from ${journal} using old
    where ${journal.key} = old.key and ${journal.state} = 'done' and ${insideTransaction}
    returning 1`;
  const [removed = []] = await inOneFlight(db, timeouts, [remove]);
  return removed.length;
}

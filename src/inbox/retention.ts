/**
 * Purges payloads, and later their keys. Only settled events are ever touched: whatever waits, or
 * needs review, stays whole. One bounded batch a call; the next one goes on where it ended.
 */
import { type SQL, sql } from "drizzle-orm";
import type { Connection } from "../db/connect.ts";
import { inboxHours as hours, webhookInbox as inbox } from "../db/schema.ts";
import { type Timeouts, inOneFlight, insideTransaction } from "../db/transaction.ts";

/** Some 5 MB of payload: short enough to hold no lock for long. */
const BATCH = 1_000;

/** @returns how many payloads were purged, of events settled more than so many days ago. */
export async function purgePayloads(
  db: Connection,
  days: number,
  timeouts: Timeouts,
): Promise<number> {
  const purge = sql`
    with old as materialized (${oldest(sql`${inbox.payload} is not null`, days)})
    update ${inbox} set payload = null from old
    where ${isOld} and ${inbox.processedAt} is not null and ${insideTransaction}
    returning 1`;
  const [purged = []] = await inOneFlight(db, timeouts, [purge]);
  return purged.length;
}

/** @returns how many keys were deleted, of events settled more than so many days ago. */
export async function deleteTombstones(
  db: Connection,
  days: number,
  timeouts: Timeouts,
): Promise<number> {
  const remove = sql`
    with old as materialized (${oldest(sql`${inbox.payload} is null`, days)})
    delete from ${inbox} using old
    where ${isOld} and ${inbox.processedAt} is not null and ${insideTransaction}
    returning 1`;
  const [removed = []] = await inOneFlight(db, timeouts, [remove]);
  return removed.length;
}

/** @returns how many counts of hours were deleted, of hours that are so many days ago. */
export async function deleteHours(
  db: Connection,
  days: number,
  timeouts: Timeouts,
): Promise<number> {
  const remove = sql`
    delete from ${hours} where ctid in (
      select ctid from ${hours} where hour < now() - ${days}::int * interval '1 day'
      order by hour limit ${BATCH})
    and ${insideTransaction} returning 1`;
  const [removed = []] = await inOneFlight(db, timeouts, [remove]);
  return removed.length;
}

const isOld = sql`${inbox.provider} = old.provider and ${inbox.endpoint} = old.endpoint
  and ${inbox.eventId} = old.event_id`;

function oldest(which: SQL, days: number): SQL {
  return sql`
    select provider, endpoint, event_id from ${inbox}
    where ${inbox.processedAt} is not null and ${which}
      and ${inbox.processedAt} < now() - ${days}::int * interval '1 day'
    order by ${inbox.processedAt} limit ${BATCH} for update skip locked`;
}

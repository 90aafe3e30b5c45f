/** Which parked or ignored events a person means, and how many those are. */
import { type SQL, sql } from "drizzle-orm";
import type { Write } from "../db/connect.ts";
import { exactly } from "../db/rows.ts";
import { webhookInbox as inbox } from "../db/schema.ts";
import { endpoints } from "./partitions.ts";

/**
 * One by its id, wherever an endpoint has it or at one; or all that are parked, or ignored, for a
 * reason. `shown`: of them, only those that a person has seen counted.
 */
export type Selection = (
  | { readonly eventId: string; readonly endpoint?: string }
  | { readonly reason: string }
  | { readonly ignoredReason: string }
) & { readonly shown?: Shown | undefined };

/**
 * How far a person saw, when they agreed: what comes behind it, or was parked or ignored since, is
 * not meant. So the same agreement, given twice, takes nothing more, but for one whose parking had begun
 * then and was not committed. Times are to the microsecond.
 */
export interface Shown {
  /** Of the database's clock, when they were counted. */
  readonly at: string;
  readonly receivedAt: string;
  readonly endpoint: string;
  readonly eventId: string;
}

/** Up to a bound: what lies above is not counted, and one more stands for it. */
export function countSelected(selection: Selection, most: number): Write {
  return sql`select count(*)::int as events from (
    select from ${inbox} where ${isSelected(selection)} limit ${most + 1}::int) as counted`;
}

/** The same of the oldest, with how far they reach; the columns of the last are null for none. */
export function showSelected(selection: Selection, most: number): Write {
  return sql`
    with counted as materialized (
      select received_at, endpoint, event_id from ${inbox} where ${isSelected(selection)}
      order by received_at, endpoint, event_id limit ${most + 1}::int
    ), last as (
      select * from (select * from counted order by received_at, endpoint, event_id
        limit ${most}::int) as shown
      order by received_at desc, endpoint desc, event_id desc limit 1
    )
    select (select count(*)::int from counted) as events, ${exactly(sql`now()`)} as at,
      ${exactly(sql`received_at`)} as received_at, endpoint, event_id
    from (select) as one left join last on true`;
}

export function isSelected({ shown, ...selection }: Selection): SQL {
  if (!shown) return isMeant(selection);
  const { at, receivedAt, endpoint, eventId } = shown;
  return sql`${isMeant(selection)}
    and coalesce(${inbox.parkedAt}, ${inbox.processedAt}) <= ${at}::timestamptz
    and ${inbox.receivedAt} <= ${receivedAt}::timestamptz
    and (${inbox.receivedAt}, ${inbox.endpoint}, ${inbox.eventId})
      <= (${receivedAt}::timestamptz, ${endpoint}::text, ${eventId}::text)`;
}

function isMeant(selection: Selection): SQL {
  const parked = sql`${inbox.parkedAt} is not null`;
  const ignored = sql`${inbox.outcome} = 'ignored'`;
  const hasPayload = sql`${inbox.payload} is not null`;
  if ("eventId" in selection) {
    const { endpoint, eventId } = selection;
    const at =
      endpoint === undefined
        ? sql`in (with recursive ${endpoints} select endpoint from endpoints)`
        : sql`= ${endpoint}`;
    return sql`(${parked} or ${ignored}) and ${hasPayload}
      and ${inbox.provider} = 'stripe' and ${inbox.endpoint} ${at}
      and ${inbox.eventId} = ${eventId}`;
  }
  if ("reason" in selection) {
    // What is parked has its payload, which a CHECK says.
    return sql`${parked} and ${inbox.lastError} = ${selection.reason}`;
  }
  return sql`${ignored} and ${hasPayload} and ${inbox.ignoredReason} = ${selection.ignoredReason}`;
}

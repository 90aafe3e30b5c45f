/**
 * Events as an operator looks for them, in the order of time, a page at a time.
 *
 * A page begins behind the last event of the one before (keyset), and costs the same wherever it is;
 * but all events of one object, or of a customer's invoices, are few, and are sorted anew. It is
 * merged from partitions that an index keeps in the order of time; what no index answers is filtered
 * from a bounded number of rows of each. So a page may hold fewer events than it could, even none,
 * and still say where the next one begins.
 */
import { type SQL, sql } from "drizzle-orm";
import type { Connection, Row } from "../db/connect.ts";
import { exactly, numberOf, textOf, textOrNull, timeOf, timeOrNull } from "../db/rows.ts";
import { webhookInbox as inbox } from "../db/schema.ts";
import { inOneFlight, type Timeouts } from "../db/transaction.ts";
import { type EventFilter, type EventState, pathOf } from "./listing-paths.ts";

/** Where a page ended. */
export interface Place {
  /** To the microsecond, as Postgres writes it. */
  readonly receivedAt: string;
  readonly endpoint: string;
  readonly eventId: string;
}

export interface ListedEvent {
  readonly endpoint: string;
  readonly eventId: string;
  readonly type: string;
  readonly objectId: string | null;
  readonly state: EventState;
  /** What the last attempt failed with, or why it was ignored. */
  readonly reason: string | null;
  readonly attempts: number;
  readonly duplicates: number;
  readonly receivedAt: Date;
  readonly ageSeconds: number;
  readonly processedAt: Date | null;
  readonly parkedAt: Date | null;
  /** Of one that waits: when the next attempt may begin. */
  readonly availableAt: Date | null;
}

/** A page begins behind the place at which the last one ended; null: at the beginning. */
export interface EventPaging {
  readonly order: "newest" | "oldest";
  readonly limit: number;
  readonly after: Place | null;
}

export interface EventPage {
  readonly events: readonly ListedEvent[];
  /** Behind it the next page begins; null: there is no more. */
  readonly next: Place | null;
}

/** Rows that a page looks at in all partitions, where not all of them belong to it. */
const LOOKED_AT = 5_000;

/** One round trip. */
export async function listEvents(
  db: Connection,
  filter: EventFilter,
  paging: EventPaging,
  timeouts: Timeouts,
): Promise<EventPage> {
  const { limit } = paging;
  const [rows = []] = await inOneFlight(db, timeouts, [page(filter, paging)]);
  const found = rows.filter((row) => row["event_id"] !== null);
  const events = found.slice(0, limit).map(toEvent);
  const last = found[limit - 1];
  if (found.length > limit && last) return { events, next: placeOf(last, "") };
  const [any] = rows;
  const next = any && any["end_event_id"] !== null ? placeOf(any, "end_") : null;
  return { events, next };
}

/**
 * The rows of the page, and one more if there is one; with each, as `end_…`, the row down to which
 * every partition was looked at. Always at least one row.
 */
function page(filter: EventFilter, paging: EventPaging): SQL {
  const { limit, order } = paging;
  const { tables, from, within, rest, parts } = pathOf(filter);
  const dir = order === "newest" ? sql`desc` : sql`asc`;
  const upToEnds = order === "newest" ? sql`>=` : sql`<=`;
  const conditions = [...within, ...bounds(filter, paging)];
  const looked =
    rest.length === 0
      ? sql`${limit + 1}::int`
      : parts === "only"
        ? sql`${LOOKED_AT}::int`
        : sql`(select greatest(${limit + 1}::int, ${LOOKED_AT}::int / greatest(count(*), 1))::int from parts)`;
  return sql`
    with recursive ${tables}, parts as materialized (
      select *, row_number() over () as nr from ${from} as parts
    ), looked as materialized (
      select found.*, row_number() over (partition by parts.nr
          order by found.received_at ${dir}, found.endpoint ${dir}, found.event_id ${dir}) as nth
      from parts cross join lateral (
        select endpoint, event_id, event_type, object_id, last_error, ignored_reason, attempts,
          duplicates, received_at, processed_at, parked_at, available_at, outcome,
          payload is not null as has_payload
        from ${inbox} where ${sql.join(conditions, sql` and `)}
        order by received_at ${dir}, endpoint ${dir}, event_id ${dir} limit ${looked}) as found
    ), ends as (
      select received_at, endpoint, event_id from looked where nth = ${looked}
      order by received_at ${dir}, endpoint ${dir}, event_id ${dir} limit 1
    ), page as (
      select looked.* from looked left join ends on true
      where (ends.event_id is null or (looked.received_at, looked.endpoint, looked.event_id)
          ${upToEnds} (ends.received_at, ends.endpoint, ends.event_id))
        ${rest.length > 0 ? sql`and ${sql.join(rest, sql` and `)}` : sql``}
      order by looked.received_at ${dir}, looked.endpoint ${dir}, looked.event_id ${dir}
      limit ${limit + 1}
    )
    select page.endpoint, page.event_id, page.event_type, page.object_id, page.last_error,
      page.ignored_reason, page.attempts, page.duplicates, page.received_at, page.processed_at,
      page.parked_at, page.available_at, page.outcome, ${exactly(sql`page.received_at`)} as place,
      extract(epoch from now() - page.received_at)::float8 as age_seconds,
      ${exactly(sql`ends.received_at`)} as end_place, ends.endpoint as end_endpoint,
      ends.event_id as end_event_id
    from (select) as one left join ends on true left join page on true
    order by page.received_at ${dir}, page.endpoint ${dir}, page.event_id ${dir}`;
}

function bounds({ since, until }: EventFilter, { order, after }: EventPaging): SQL[] {
  const behind = order === "newest" ? sql`<` : sql`>`;
  return [
    ...(since ? [sql`received_at >= ${since.toISOString()}::timestamptz`] : []),
    ...(until ? [sql`received_at < ${until.toISOString()}::timestamptz`] : []),
    // The first condition bounds the index; the second one is exact among those of one moment.
    ...(after
      ? [
          sql`received_at ${behind}= ${after.receivedAt}::timestamptz`,
          sql`(received_at, endpoint, event_id) ${behind}
            (${after.receivedAt}::timestamptz, ${after.endpoint}::text, ${after.eventId}::text)`,
        ]
      : []),
  ];
}

function placeOf(row: Row, prefix: "" | "end_"): Place {
  return {
    receivedAt: textOf(row, `${prefix}place`),
    endpoint: textOf(row, `${prefix}endpoint`),
    eventId: textOf(row, `${prefix}event_id`),
  };
}

/** Of a row with the columns of the inbox, its payload not among them. */
export function toEvent(row: Row): ListedEvent {
  const state = stateOf(row);
  return {
    endpoint: textOf(row, "endpoint"),
    eventId: textOf(row, "event_id"),
    type: textOf(row, "event_type"),
    objectId: textOrNull(row, "object_id"),
    state,
    reason: textOrNull(row, "ignored_reason") ?? textOrNull(row, "last_error"),
    attempts: numberOf(row, "attempts"),
    duplicates: numberOf(row, "duplicates"),
    receivedAt: timeOf(row, "received_at"),
    ageSeconds: numberOf(row, "age_seconds"),
    processedAt: timeOrNull(row, "processed_at"),
    parkedAt: timeOrNull(row, "parked_at"),
    availableAt: state === "waiting" ? timeOf(row, "available_at") : null,
  };
}

function stateOf(row: Row): EventState {
  if (row["parked_at"] !== null) return "needs_review";
  if (row["processed_at"] === null) return "waiting";
  return row["outcome"] === "ignored" ? "ignored" : "processed";
}

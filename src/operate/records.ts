/**
 * Lists of what people and sweeps left on record, and of messages: in the order of time, a page at a
 * time, each page behind the last row of the one before.
 */
import { type SQL, sql } from "drizzle-orm";
import type { Connection, Row } from "../db/connect.ts";
import { exactly, numberOf, textOf, textOrNull, timeOf, timeOrNull } from "../db/rows.ts";
import {
  callJournal,
  discrepancies,
  operatorActions,
  outbox,
  sweepGaps as gaps,
} from "../db/schema.ts";
import { inOneFlight, type Timeouts } from "../db/transaction.ts";
import { isNotDone } from "../outbox/stats.ts";

export interface RecordedAction {
  readonly id: number;
  readonly at: Date;
  readonly operator: string;
  readonly via: string;
  readonly action: string;
  readonly subject: string;
  readonly why: string;
  readonly affected: number;
}

export interface ListedDiscrepancy {
  readonly id: number;
  readonly kind: string;
  readonly objectId: string;
  readonly eventId: string | null;
  readonly detail: unknown;
  readonly foundAt: Date;
  readonly resolvedAt: Date | null;
  readonly resolution: string | null;
}

export interface ListedMessage {
  readonly id: number;
  readonly type: string;
  readonly aggregateId: string;
  readonly state: MessageState;
  readonly attempts: number;
  /** What the last attempt to send it failed with, or its call. */
  readonly reason: string | null;
  readonly createdAt: Date;
  readonly publishedAt: Date | null;
  readonly doneAt: Date | null;
}

/** `needs_review`: it could not be sent, or its call is parked. */
export type MessageState = "waiting" | "not_done" | "needs_review" | "done";

/** One event that a sweep found missing, and brought in. */
export interface ListedGap {
  readonly endpoint: string;
  readonly eventId: string;
  readonly type: string;
  /** At Stripe. */
  readonly createdAt: Date;
  readonly foundAt: Date;
}

/** Where a page ended: a time to the microsecond, and what tells rows of the same time apart. */
export interface Spot {
  readonly time: string;
  readonly tie: string;
}

/** A page begins behind the spot at which the last one ended; null: at the beginning. */
export interface Paging {
  readonly order: "newest" | "oldest";
  readonly limit: number;
  readonly after: Spot | null;
}

export interface Page<T> {
  readonly items: readonly T[];
  /** Null: there is no more. */
  readonly next: Spot | null;
}

/** What is listed: rows, and by which of their columns. */
interface Listing {
  readonly select: SQL;
  readonly where: readonly SQL[];
  /** In this order an index has the rows. */
  readonly time: SQL;
  /** Unique among rows of one time. */
  readonly tie: SQL;
  readonly tieType: "bigint" | "text";
}

const ID = { tie: sql`id`, tieType: "bigint" } as const;

export function listActions(
  db: Connection,
  paging: Paging,
  timeouts: Timeouts,
): Promise<Page<RecordedAction>> {
  const actions = { select: sql`* from ${operatorActions}`, where: [], time: sql`at`, ...ID };
  return list(db, actions, paging, timeouts, readAction);
}

export function listDiscrepancies(
  db: Connection,
  filter: { readonly open?: boolean | undefined; readonly kind?: string | undefined },
  paging: Paging,
  timeouts: Timeouts,
): Promise<Page<ListedDiscrepancy>> {
  const { open, kind } = filter;
  const where = [
    ...(open === undefined ? [] : [open ? sql`resolved_at is null` : sql`resolved_at is not null`]),
    ...(kind === undefined ? [] : [sql`kind = ${kind}`]),
  ];
  const found = { select: sql`* from ${discrepancies}`, where, time: sql`found_at`, ...ID };
  return list(db, found, paging, timeouts, toDiscrepancy);
}

export function listGaps(
  db: Connection,
  paging: Paging,
  timeouts: Timeouts,
): Promise<Page<ListedGap>> {
  const missed: Listing = {
    select: sql`* from ${gaps}`,
    where: [],
    time: sql`found_at`,
    tie: sql`(endpoint || ' ' || event_id)`,
    tieType: "text",
  };
  return list(db, missed, paging, timeouts, (row) => ({
    endpoint: textOf(row, "endpoint"),
    eventId: textOf(row, "event_id"),
    type: textOf(row, "event_type"),
    createdAt: timeOf(row, "created_at"),
    foundAt: timeOf(row, "found_at"),
  }));
}

/** @param filter.reason of those that need review: why. */
export function listMessages(
  db: Connection,
  filter: { readonly state: MessageState; readonly reason?: string | undefined },
  paging: Paging,
  timeouts: Timeouts,
): Promise<Page<ListedMessage>> {
  const { state, reason } = filter;
  const { where, time } = messagesThatAre(state, reason);
  const select = sql`id, event_type, aggregate_id, attempts, last_error, created_at, published_at,
      done_at, (select max(call.last_error) from ${callJournal} as call
        where call.message_id = ${outbox.id} and call.state <> 'done') as call_error
    from ${outbox}`;
  return list(db, { select, where: [where], time, ...ID }, paging, timeouts, (row) => ({
    id: numberOf(row, "id"),
    type: textOf(row, "event_type"),
    aggregateId: textOf(row, "aggregate_id"),
    state,
    attempts: numberOf(row, "attempts"),
    reason: textOrNull(row, "call_error") ?? textOrNull(row, "last_error"),
    createdAt: timeOf(row, "created_at"),
    publishedAt: timeOrNull(row, "published_at"),
    doneAt: timeOrNull(row, "done_at"),
  }));
}

/** With the time by which a partial index has them in order; what needs review is sorted. */
function messagesThatAre(
  state: MessageState,
  reason: string | undefined,
): Pick<Listing, "time"> & { readonly where: SQL } {
  switch (state) {
    case "waiting":
      return { where: sql`published_at is null and parked_at is null`, time: sql`created_at` };
    case "not_done":
      return { where: isNotDone, time: sql`published_at` };
    case "needs_review": {
      const because = reason === undefined ? sql`` : sql`and last_error = ${reason}`;
      const where = sql`id in (
        select id from ${outbox} where parked_at is not null ${because}
        union all select message_id from ${callJournal} where state = 'parked' ${because})`;
      return { where, time: sql`created_at` };
    }
    case "done":
      return { where: sql`done_at is not null`, time: sql`done_at` };
  }
}

/** One round trip. */
async function list<T>(
  db: Connection,
  { select, where, time, tie, tieType }: Listing,
  { order, limit, after }: Paging,
  timeouts: Timeouts,
  read: (row: Row) => T,
): Promise<Page<T>> {
  const [dir, behind] = order === "newest" ? [sql`desc`, sql`<`] : [sql`asc`, sql`>`];
  const conditions = [
    ...where,
    ...(after === null
      ? []
      : [
          sql`${time} ${behind}= ${after.time}::timestamptz`,
          sql`(${time}, ${tie}) ${behind}
            (${after.time}::timestamptz, ${after.tie}::${sql.raw(tieType)})`,
        ]),
  ];
  const condition =
    conditions.length === 0 ? sql`` : sql`where ${sql.join(conditions, sql` and `)}`;
  const [rows = []] = await inOneFlight(db, timeouts, [
    sql`select ${exactly(time)} as spot_time, ${tie}::text as spot_tie, ${select} ${condition}
      order by ${time} ${dir}, ${tie} ${dir} limit ${limit + 1}`,
  ]);
  const page = rows.slice(0, limit);
  const last = page.at(-1);
  return {
    items: page.map(read),
    next:
      rows.length > limit && last
        ? { time: textOf(last, "spot_time"), tie: textOf(last, "spot_tie") }
        : null,
  };
}

/** @returns null when there is none. */
export async function readDiscrepancy(
  db: Connection,
  id: number,
  timeouts: Timeouts,
): Promise<ListedDiscrepancy | null> {
  const [[row] = []] = await inOneFlight(db, timeouts, [
    sql`select * from ${discrepancies} where id = ${id}::bigint`,
  ]);
  return row ? toDiscrepancy(row) : null;
}

function toDiscrepancy(row: Row): ListedDiscrepancy {
  return {
    id: numberOf(row, "id"),
    kind: textOf(row, "kind"),
    objectId: textOf(row, "object_id"),
    eventId: textOrNull(row, "event_id"),
    detail: row["detail"],
    foundAt: timeOf(row, "found_at"),
    resolvedAt: timeOrNull(row, "resolved_at"),
    resolution: textOrNull(row, "resolution"),
  };
}

export function readAction(row: Row): RecordedAction {
  return {
    id: numberOf(row, "id"),
    at: timeOf(row, "at"),
    operator: textOf(row, "operator"),
    via: textOf(row, "via"),
    action: textOf(row, "action"),
    subject: textOf(row, "subject"),
    why: textOf(row, "why"),
    affected: numberOf(row, "affected"),
  };
}

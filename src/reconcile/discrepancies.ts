/**
 * What a person must look at, opened once for each kind and object.
 *
 * Events that contradict each other do so for ever: once a person has resolved that, it is opened
 * again only when something else is found. What a comparison with Stripe finds can be put right:
 * found again, it was not, and is opened again. The note of before is kept in the detail.
 */
import { type SQL, sql } from "drizzle-orm";
import type { Connection, Tx, Write } from "../db/connect.ts";
import { type Count, numberOf, timeOrNull, toCount } from "../db/rows.ts";
import { discrepancies } from "../db/schema.ts";
import { inOneFlight, insideTransaction, type Timeouts } from "../db/transaction.ts";

export type DiscrepancyKind = (typeof discrepancies.$inferInsert)["kind"];

export interface Finding {
  readonly kind: DiscrepancyKind;
  readonly objectId: string;
  readonly eventId: string;
  /** A jsonb object: what contradicts what, in ids, amounts and codes. */
  readonly detail: SQL;
  /** The rows that show it; a discrepancy is opened if there is one. */
  readonly evidence: SQL;
}

/** What a comparison found. */
export interface Found {
  readonly kind: DiscrepancyKind;
  readonly objectId: string;
  readonly detail: Readonly<Record<string, string | number | null>>;
}

/** `opened`: now. `open`: since before. `settled`: a person has resolved it, and nothing is new. */
export type Standing = "opened" | "open" | "settled";

const RESOLVED_BEFORE = "resolved_before";

const openAgain = sql`found_at = now(), resolved_at = null, resolution = null,
  detail = excluded.detail || jsonb_build_object(${RESOLVED_BEFORE}::text,
    ${discrepancies.resolution})`;

/**
 * Whether money is spoken of that was not before. An event and a comparison tell the same in words
 * of their own; that an invoice was voided after it was paid can be told only once.
 */
const somethingElse = sql`${discrepancies.kind} <> 'void_after_paid'
  and ${money(sql`${discrepancies.detail}`)} is distinct from ${money(sql`excluded.detail`)}`;

function money(detail: SQL): SQL {
  return sql`array[coalesce(${detail} ->> 'stripe_amount', ${detail} ->> 'amount'),
    coalesce(${detail} ->> 'stripe_currency', ${detail} ->> 'currency')]`;
}

/** Kinds that are facts of the past; what the others tell can be put right. */
const CONTRADICTIONS: readonly DiscrepancyKind[] = [
  "paid_after_void",
  "void_after_paid",
  "payment_mismatch",
];

export function openDiscrepancy(tx: Tx, { kind, objectId, eventId, detail, evidence }: Finding) {
  return tx.execute(
    openDiscrepanciesFrom(sql`
      select ${kind}::text, ${objectId}::text, ${eventId}::text, ${detail} ${evidence}`),
  );
}

/** @param findings a query: kinds, ids of objects and of events, and details. */
export function openDiscrepanciesFrom(findings: SQL): SQL {
  return sql`
    insert into ${discrepancies} (kind, object_id, event_id, detail) ${findings}
    on conflict (kind, object_id) do update set event_id = excluded.event_id, ${openAgain}
    where ${discrepancies.resolvedAt} is not null and ${somethingElse}`;
}

/** Puts it on record, unless that was done before; one round trip. */
export async function recordFound(
  db: Connection,
  found: Found,
  timeouts: Timeouts,
): Promise<Standing> {
  const { kind, objectId } = found;
  const [opened, states] = await inOneFlight(db, timeouts, [
    openFound(found),
    sql`select resolved_at is null as open from ${discrepancies}
      where ${isAbout({ kind, objectId })}`,
  ]);
  if (opened?.[0]) return "opened";
  return states?.[0]?.["open"] === true ? "open" : "settled";
}

/** @returns whether it was open. */
export async function resolveDiscrepancy(
  db: Connection,
  about: Pick<Found, "kind" | "objectId">,
  note: string,
  timeouts: Timeouts,
): Promise<boolean> {
  const [resolved] = await inOneFlight(db, timeouts, [
    sql`update ${discrepancies} set resolved_at = now(), resolution = ${note}
      where ${isAbout(about)} and resolved_at is null and ${insideTransaction} returning 1`,
  ]);
  return resolved?.[0] !== undefined;
}

/** A row if it was open, as it was found then; null: whenever. */
export function resolveById(id: number, foundAt: Date | null, note: string): Write {
  const found =
    foundAt === null
      ? sql``
      : sql`and date_trunc('milliseconds', found_at) = ${foundAt.toISOString()}::timestamptz`;
  return sql`update ${discrepancies} set resolved_at = now(), resolution = ${note}::text
    where ${discrepancies.id} = ${id}::bigint and resolved_at is null ${found}
      and ${insideTransaction}
    returning 1`;
}

/**
 * Up to which a person saw them, the oldest first; to the millisecond, and within it to the id. One whose
 * finding had begun by then and was committed later is among them.
 */
export interface SeenUntil {
  readonly foundUntil: Date;
  /** Null: all of that millisecond. */
  readonly lastId: number | null;
}

const foundMs = sql`date_trunc('milliseconds', found_at)`;

/** A row for each that is open and of the kind, as far as was seen; at most so many, the oldest first. */
export function resolveOfKind(
  kind: DiscrepancyKind,
  { foundUntil, lastId }: SeenUntil,
  most: number,
  note: string,
): Write {
  return sql`
    with picked as materialized (
      select id from ${discrepancies}
      where kind = ${kind} and resolved_at is null
        and (${foundMs}, id) <= (${foundUntil.toISOString()}::timestamptz,
          ${lastId ?? Number.MAX_SAFE_INTEGER}::bigint)
      order by ${foundMs}, id limit ${most}::int for update
    )
    update ${discrepancies} set resolved_at = now(), resolution = ${note}::text
    from picked where ${discrepancies.id} = picked.id and ${insideTransaction}
    returning 1`;
}

/** Open ones of one kind, up to a bound, and how far they reach; one round trip. */
export async function countOpen(
  db: Connection,
  kind: DiscrepancyKind,
  most: number,
  timeouts: Timeouts,
): Promise<{ readonly open: Count; readonly until: SeenUntil | null }> {
  const [[row] = []] = await inOneFlight(db, timeouts, [
    sql`
    with counted as materialized (
      select ${foundMs} as found, id from ${discrepancies}
      where kind = ${kind} and resolved_at is null order by 1, 2 limit ${most + 1}::int
    ), last as (
      select * from (select * from counted order by found, id limit ${most}::int) as seen
      order by found desc, id desc limit 1
    )
    select (select count(*)::int from counted) as open, found, id
    from (select) as one left join last on true`,
  ]);
  const foundUntil = row ? timeOrNull(row, "found") : null;
  return {
    open: toCount(row?.["open"], most),
    until: row && foundUntil ? { foundUntil, lastId: numberOf(row, "id") } : null,
  };
}

/** Whether it is open; no row when there is none. */
export function readStanding(id: number): Write {
  return sql`select resolved_at is null as open from ${discrepancies}
    where ${discrepancies.id} = ${id}::bigint`;
}

function openFound({ kind, objectId, detail }: Found): Write {
  const again = CONTRADICTIONS.includes(kind) ? somethingElse : sql`true`;
  return sql`
    insert into ${discrepancies} (kind, object_id, detail)
    select ${kind}::text, ${objectId}::text, ${JSON.stringify(detail)}::text::jsonb
    where ${insideTransaction}
    on conflict (kind, object_id) do update set ${openAgain}
    where ${discrepancies.resolvedAt} is not null and ${again}
    returning 1`;
}

function isAbout({ kind, objectId }: Pick<Found, "kind" | "objectId">): SQL {
  return sql`${discrepancies.kind} = ${kind} and ${discrepancies.objectId} = ${objectId}`;
}

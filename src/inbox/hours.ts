/**
 * Hour after hour, what was received and settled: counted once, when the hour is over, because a day
 * of events is too much to be read whenever somebody looks. The figures of a day are read from that.
 */
import { sql } from "drizzle-orm";
import type { Connection, Row, Write } from "../db/connect.ts";
import { numberOf, numberOrNull, textOf, timeOf, timeOrNull } from "../db/rows.ts";
import { heartbeats, inboxHours as hours, webhookInbox as inbox } from "../db/schema.ts";
import { inOneFlight, insideTransaction, type Timeouts } from "../db/transaction.ts";
import {
  busiestFirst,
  ensured,
  NOTHING,
  type Rates,
  type ReasonCount,
  Reasons,
  type TypeRates,
  type Writable,
} from "./sums.ts";

/** The last 24 hours that are over. */
export interface LastDay {
  /** Which hours are counted ends here; null: none is. It falls behind when no tick runs. */
  readonly countedUntil: Date | null;
  readonly received: number;
  /** Deliveries of the same events that came on top. */
  readonly duplicates: number;
  readonly processed: number;
  readonly ignored: readonly ReasonCount[];
  /** The oldest first. */
  readonly byHour: readonly HourCounts[];
  readonly byHourAndType: readonly (HourCounts & TypeRates)[];
  readonly byType: readonly TypeRates[];
}

export interface HourCounts extends Rates {
  /** When it began. */
  readonly hour: Date;
  /** Seconds from received to processed; null: nothing was processed. */
  readonly p50: number | null;
  readonly p95: number | null;
  readonly p99: number | null;
}

/** The row of `heartbeats` that says up to where hours are counted. */
const HOURS = "hours";
/** A transaction that received an event in the hour has come to its end by then. */
const SETTLES_MINUTES = 2;
const MOST_HOURS = 24;

const countedUntil = sql`(select (detail ->> 'until')::timestamptz from ${heartbeats}
  where name = ${HOURS})`;

/**
 * Counts the oldest hour of the last day that is over and not counted; one round trip. While another
 * tick is at it, there is none.
 *
 * @param how `pass` goes on without counting it, for one that takes too long.
 * @returns the hour; null: there was none.
 */
export async function countHour(
  db: Connection,
  how: "count" | "pass",
  timeouts: Timeouts,
): Promise<Date | null> {
  const counting = how === "count" ? [countIt] : [];
  const [, advanced] = await inOneFlight(db, timeouts, [beginHour, advance, ...counting]);
  const row = advanced?.[0];
  return row ? timeOf(row, "hour") : null;
}

const beginHour: Write = sql`
  insert into ${heartbeats} (name, started_at, detail)
  select ${HOURS}::text, now(), jsonb_build_object('until',
    date_trunc('hour', now()) - ${MOST_HOURS}::int * interval '1 hour')
  where ${insideTransaction}
  on conflict (name) do nothing`;

/**
 * Ticks may overlap: whoever holds this row counts. What is older than a day is not counted any
 * more: no page would read it.
 */
const advance: Write = sql`
  update ${heartbeats} set started_at = now(), completed_at = now(),
    detail = jsonb_build_object('until', next.hour + interval '1 hour')
  from (select greatest((detail ->> 'until')::timestamptz,
      date_trunc('hour', now()) - ${MOST_HOURS}::int * interval '1 hour') as hour
    from ${heartbeats} where name = ${HOURS} for update skip locked) as next
  where name = ${HOURS} and ${insideTransaction}
    and (detail ->> 'until')::timestamptz <= next.hour
    and next.hour + interval '1 hour' < now() - ${SETTLES_MINUTES}::int * interval '1 minute'
  returning next.hour`;

/**
 * The hour that `advance` has just passed; nothing when it passed none. `offset 0` keeps the planner
 * from joining all events with the hour, instead of asking an index for those of the hour.
 */
const countIt: Write = sql`
  with passed as (
    select (detail ->> 'until')::timestamptz - interval '1 hour' as hour,
      (detail ->> 'until')::timestamptz as until
    from ${heartbeats} where name = ${HOURS} and completed_at = now()
  ), received as (
    select coalesce(endpoint, '') as endpoint, coalesce(event_type, '') as event_type,
      coalesce(reason, '') as ignored_reason,
      count(*)::int as received, sum(duplicates)::int as duplicates
    from passed cross join lateral (
      select endpoint, event_type, coalesce(ignored_reason, '') as reason, duplicates
      from ${inbox} where received_at >= passed.hour and received_at < passed.until offset 0) as events
    group by grouping sets ((endpoint, event_type, reason), ())
  ), settled as (
    select coalesce(endpoint, '') as endpoint, coalesce(event_type, '') as event_type,
      coalesce(reason, '') as ignored_reason, count(*)::int as settled,
      percentile_cont(array[0.5, 0.95, 0.99]) within group (order by seconds)
        filter (where reason = '') as seconds
    from passed cross join lateral (
      select endpoint, event_type, coalesce(ignored_reason, '') as reason,
        extract(epoch from processed_at - received_at)::float8 as seconds
      from ${inbox} where processed_at >= passed.hour and processed_at < passed.until
        and payload is not null offset 0) as events
    group by grouping sets ((endpoint, event_type, reason), ())
  )
  insert into ${hours} (hour, endpoint, event_type, ignored_reason, received, duplicates, settled,
    p50_seconds, p95_seconds, p99_seconds)
  select passed.hour, endpoint, event_type, ignored_reason, coalesce(received, 0),
    coalesce(duplicates, 0), coalesce(settled, 0), seconds[1], seconds[2], seconds[3]
  from passed cross join (
    select * from received full join settled using (endpoint, event_type, ignored_reason)) as counted
  on conflict do nothing`;

export const dayStatements: readonly Write[] = [
  sql`select ${countedUntil} as until`,
  sql`select * from ${hours}
    where hour >= date_trunc('hour', now()) - ${MOST_HOURS}::int * interval '1 hour'
    order by hour, endpoint, event_type, ignored_reason`,
];

export function readDay([until, counted = []]: readonly (readonly Row[])[]): LastDay {
  const byHour: HourCounts[] = [];
  const byType = new Map<string, Writable<TypeRates>>();
  const ignored = new Reasons();
  const sum = { received: 0, duplicates: 0, processed: 0, ignored: 0 };
  const ofHour = new Map<number, Writable<HourCounts>>();
  const ofBoth = new Map<string, Writable<HourCounts & TypeRates>>();
  for (const row of counted) {
    const hour = timeOf(row, "hour");
    const [endpoint, type] = [textOf(row, "endpoint"), textOf(row, "event_type")];
    if (type === "") {
      const total = { hour, ...NOTHING, ...percentilesOf(row) };
      ofHour.set(hour.getTime(), total);
      byHour.push(total);
      continue;
    }
    const reason = textOf(row, "ignored_reason");
    const settled = numberOf(row, "settled");
    const key = JSON.stringify([endpoint, type]);
    const typed = ensured(byType, key, { endpoint, type, ...NOTHING });
    const first = { hour, endpoint, type, ...NOTHING, ...percentilesOf(row) };
    const both = ensured(ofBoth, `${hour.getTime()} ${key}`, first);
    for (const one of [sum, typed, both, ofHour.get(hour.getTime())]) {
      if (!one) continue;
      one.received += numberOf(row, "received");
      one[reason === "" ? "processed" : "ignored"] += settled;
    }
    sum.duplicates += numberOf(row, "duplicates");
    if (reason !== "") ignored.add(reason, settled);
  }
  return {
    countedUntil: until?.[0] ? timeOrNull(until[0], "until") : null,
    received: sum.received,
    duplicates: sum.duplicates,
    processed: sum.processed,
    ignored: ignored.commonestFirst(),
    byHour,
    byHourAndType: [...ofBoth.values()],
    byType: busiestFirst(byType.values()),
  };
}

function percentilesOf(row: Row): Pick<HourCounts, "p50" | "p95" | "p99"> {
  return {
    p50: numberOrNull(row, "p50_seconds"),
    p95: numberOrNull(row, "p95_seconds"),
    p99: numberOrNull(row, "p99_seconds"),
  };
}

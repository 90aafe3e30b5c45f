/**
 * What was received and settled in the last hour, from the events themselves: true to the moment,
 * whether or not ticks run. Of a flood, only the newest events are looked at.
 */
import { sql } from "drizzle-orm";
import type { Row, Write } from "../db/connect.ts";
import { numberOf, textOf, textOrNull, timeOf } from "../db/rows.ts";
import { webhookInbox as inbox } from "../db/schema.ts";
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

export interface LastHour {
  readonly received: number;
  /** Deliveries of the same events that came on top. */
  readonly duplicates: number;
  /** Of all deliveries, 0 to 1; null when there was none. */
  readonly duplicatesShare: number | null;
  readonly processed: number;
  readonly ignored: readonly ReasonCount[];
  /** True: there were so many that only the newest were counted; the minutes say from when on. */
  readonly truncated: boolean;
  readonly byType: readonly TypeRates[];
  /** Minutes in which nothing happened are left out; the oldest first. */
  readonly byMinute: readonly ({ readonly minute: Date } & Rates)[];
  readonly byMinuteAndType: readonly ({ readonly minute: Date } & TypeRates)[];
  /** From received to processed, of what was processed; type null: of all types. */
  readonly processingSeconds: readonly ({ readonly type: string | null } & Percentiles)[];
}

export interface Percentiles {
  readonly events: number;
  readonly p50: number;
  readonly p95: number;
  readonly p99: number;
}

/** Of those received, and of those settled: some eight a second. */
export const MOST_LATELY = 30_000;
/** They have to be sorted. */
const MOST_TIMED = 20_000;

export const rateStatements: readonly Write[] = [
  sql`select endpoint, event_type, date_trunc('minute', received_at) as minute,
      count(*)::int as events, sum(duplicates)::int as duplicates
    from (
      select endpoint, event_type, received_at, duplicates from ${inbox}
      where received_at > now() - interval '1 hour'
      order by received_at desc limit ${MOST_LATELY}) as lately
    group by 1, 2, 3`,
  sql`select endpoint, event_type, ignored_reason, date_trunc('minute', processed_at) as minute,
      count(*)::int as events
    from (
      select endpoint, event_type, ignored_reason, processed_at from ${inbox}
      where processed_at > now() - interval '1 hour' and payload is not null
      order by processed_at desc limit ${MOST_LATELY}) as lately
    group by 1, 2, 3, 4`,
  sql`select event_type, count(*)::int as events,
      percentile_cont(array[0.5, 0.95, 0.99]) within group (order by seconds) as percentiles
    from (
      select event_type, outcome, extract(epoch from processed_at - received_at)::float8 as seconds
      from ${inbox}
      where processed_at > now() - interval '1 hour' and payload is not null
      order by processed_at desc limit ${MOST_TIMED}) as lately
    where outcome = 'processed'
    group by grouping sets ((event_type), ()) having count(*) > 0
    order by grouping(event_type) desc, 2 desc, 1`,
];

export function readRates([
  received = [],
  settled = [],
  timed = [],
]: readonly (readonly Row[])[]): LastHour {
  const count = new Counting();
  for (const row of received) count.add(row, "received");
  for (const row of settled) {
    count.add(row, row["ignored_reason"] === null ? "processed" : "ignored");
  }
  const duplicates = received.reduce((sum, row) => sum + numberOf(row, "duplicates"), 0);
  const ignored = new Reasons();
  for (const row of settled) {
    const reason = textOrNull(row, "ignored_reason");
    if (reason !== null) ignored.add(reason, numberOf(row, "events"));
  }
  const { all, types, minutes, both } = count;
  const deliveries = all.received + duplicates;
  return {
    received: all.received,
    duplicates,
    duplicatesShare: deliveries === 0 ? null : duplicates / deliveries,
    processed: all.processed,
    ignored: ignored.commonestFirst(),
    truncated: all.received >= MOST_LATELY || all.processed + all.ignored >= MOST_LATELY,
    byType: busiestFirst(types.values()),
    byMinute: [...minutes.values()].toSorted(earlierFirst),
    byMinuteAndType: [...both.values()].toSorted(earlierFirst),
    processingSeconds: timed.map(toPercentiles),
  };
}

function earlierFirst(a: { readonly minute: Date }, b: { readonly minute: Date }): number {
  return a.minute.getTime() - b.minute.getTime();
}

/** Adds rows up in all ways. */
class Counting {
  readonly all: Writable<Rates> = { ...NOTHING };
  readonly types = new Map<string, Writable<TypeRates>>();
  readonly minutes = new Map<number, Writable<LastHour["byMinute"][number]>>();
  readonly both = new Map<string, Writable<LastHour["byMinuteAndType"][number]>>();

  add(row: Row, what: keyof Rates): void {
    const events = numberOf(row, "events");
    const [endpoint, type] = [textOf(row, "endpoint"), textOf(row, "event_type")];
    const minute = timeOf(row, "minute");
    const ofType = JSON.stringify([endpoint, type]);
    const ofBoth = `${minute.getTime()} ${ofType}`;
    for (const sum of [
      this.all,
      ensured(this.types, ofType, { endpoint, type, ...NOTHING }),
      ensured(this.minutes, minute.getTime(), { minute, ...NOTHING }),
      ensured(this.both, ofBoth, { minute, endpoint, type, ...NOTHING }),
    ]) {
      sum[what] += events;
    }
  }
}

function toPercentiles(row: Row): LastHour["processingSeconds"][number] {
  const [p50, p95, p99] = Array.isArray(row["percentiles"]) ? row["percentiles"] : [];
  return {
    type: textOrNull(row, "event_type"),
    events: numberOf(row, "events"),
    p50: Number(p50),
    p95: Number(p95),
    p99: Number(p99),
  };
}

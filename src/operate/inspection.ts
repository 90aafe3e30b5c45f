/** One event with everything that is known of it, in one round trip. */
import { type SQL, sql } from "drizzle-orm";
import type { Connection, Row, Write } from "../db/connect.ts";
import { numberOf, textOrNull, timeOf } from "../db/rows.ts";
import {
  operatorActions as actions,
  sweepGaps as gaps,
  webhookInbox as inbox,
} from "../db/schema.ts";
import { inOneFlight, type Timeouts } from "../db/transaction.ts";
import { type ListedEvent, toEvent } from "../inbox/listing.ts";
import type { Key } from "../inbox/transitions.ts";
import { eventSubject } from "./actions.ts";
import { readAction, type RecordedAction } from "./records.ts";

/** How the business tells of the object that an event speaks of. */
export interface Tracing<T> {
  readonly statements: (objectId: SQL) => readonly Write[];
  readonly read: (rows: readonly (readonly Row[])[]) => T;
}

export interface Inspected<T> {
  readonly event: ListedEvent & {
    readonly fence: number;
    /** What Stripe sent could not be stored to the letter. */
    readonly payloadAltered: boolean;
  };
  /** When a sweep brought it in, because it had not been delivered; null: it was delivered. */
  readonly sweptAt: Date | null;
  /** Those that named it; what was done by a reason is in the list of all actions. */
  readonly actions: readonly RecordedAction[];
  readonly trace: T;
  /** Null: it was purged. */
  readonly payload: Payload | null;
}

/** What Stripe sent, as a JSON text with every digit of it. */
export interface Payload {
  /** Whole; of an excerpt, laid out in lines, or its beginning where it is too long for that. */
  readonly text: string;
  readonly bytes: number;
  readonly whole: boolean;
}

/** Laid out, what is nested deep grows: each of its lines begins with as many blanks. */
const LAID_OUT_BYTES = 65_536;
const EXCERPT_CHARACTERS = 100_000;

/** `excerpt`: as much of it as a person reads. */
export type PayloadPart = "whole" | "excerpt";

/** Of the row's payload as `stored`, which is written out once. */
function payloadColumns(part: PayloadPart): SQL {
  const text = {
    whole: sql`stored.text`,
    excerpt: sql`left(case when octet_length(stored.text) <= ${LAID_OUT_BYTES}::int
      then jsonb_pretty(payload) else stored.text end, ${EXCERPT_CHARACTERS + 1}::int)`,
  }[part];
  return sql`${text} as payload, octet_length(stored.text) as payload_bytes`;
}

function readPayload(row: Row, part: PayloadPart): Payload | null {
  const text = textOrNull(row, "payload");
  if (text === null) return null;
  const bytes = numberOf(row, "payload_bytes");
  const whole = part === "whole" || text.length <= EXCERPT_CHARACTERS;
  return { text: whole ? text : text.slice(0, EXCERPT_CHARACTERS).toWellFormed(), bytes, whole };
}

const MOST_ACTIONS = 50;

/** What Stripe sent, to the letter; null when it was purged, or there is no such event. */
export async function readWholePayload(
  db: Connection,
  key: Key,
  timeouts: Timeouts,
): Promise<string | null> {
  const [[row] = []] = await inOneFlight(db, timeouts, [
    sql`select payload::text as payload from ${inbox} where ${isKey(key)}`,
  ]);
  return row ? textOrNull(row, "payload") : null;
}

function isKey({ endpoint, eventId }: Key): SQL {
  return sql`provider = 'stripe' and endpoint = ${endpoint} and event_id = ${eventId}`;
}

/** @returns null when there is no such event. */
export async function inspectEvent<T>(
  db: Connection,
  key: Key,
  part: PayloadPart,
  tracing: Tracing<T>,
  timeouts: Timeouts,
): Promise<Inspected<T> | null> {
  const { endpoint, eventId } = key;
  const isIt = isKey(key);
  const objectId = sql`(select object_id from ${inbox} where ${isIt})`;
  const [found, swept, acted, ...traces] = await inOneFlight(db, timeouts, [
    sql`select endpoint, event_id, event_type, object_id, last_error, ignored_reason, attempts,
        duplicates, received_at, processed_at, parked_at, available_at, outcome, fence,
        payload_altered, extract(epoch from now() - received_at)::float8 as age_seconds,
        ${payloadColumns(part)}
      from ${inbox} cross join lateral (select payload::text as text offset 0) as stored
      where ${isIt}`,
    sql`select found_at from ${gaps} where endpoint = ${endpoint} and event_id = ${eventId}`,
    sql`select * from ${actions} where subject in (${eventSubject(eventId)}, ${eventSubject(eventId, endpoint)})
      order by id desc limit ${MOST_ACTIONS}`,
    ...tracing.statements(objectId),
  ]);
  const row = found?.[0];
  if (!row) return null;
  return {
    event: {
      ...toEvent(row),
      fence: numberOf(row, "fence"),
      payloadAltered: row["payload_altered"] === true,
    },
    sweptAt: swept?.[0] ? timeOf(swept[0], "found_at") : null,
    actions: (acted ?? []).map(readAction),
    trace: tracing.read(traces),
    payload: readPayload(row, part),
  };
}

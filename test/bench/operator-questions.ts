/** What operators ask of the database, as the product asks it. */
import type { Connection } from "../../src/db/connect.ts";
import type { Timeouts } from "../../src/db/transaction.ts";
import { countHour } from "../../src/inbox/hours.ts";
import { listEvents, type Place } from "../../src/inbox/listing.ts";
import type { EventFilter } from "../../src/inbox/listing-paths.ts";
import { objectsOfCustomer, readTrace, traceStatements } from "../../src/billing/trace.ts";
import { MOST_COUNTED } from "../../src/db/rows.ts";
import { countRequeueable } from "../../src/inbox/review.ts";
import { readFigures } from "../../src/operate/figures.ts";
import { inspectEvent } from "../../src/operate/inspection.ts";
import {
  listActions,
  listDiscrepancies,
  listGaps,
  listMessages,
} from "../../src/operate/records.ts";
import { countResendable } from "../../src/outbox/review.ts";
import type { Client } from "pg";
import { RARE_TYPE } from "./event-kinds.ts";

export interface Question {
  readonly what: string;
  /** Of its statements, in their order. */
  readonly names: readonly string[];
  /** Of one round trip. */
  readonly ask: (db: Connection) => Promise<unknown>;
  /** True: what is asked for changes by being asked. */
  readonly once?: boolean;
}

/** None is to be cut short by it here. */
const TIMEOUTS: Timeouts = { lockTimeoutMs: 5_000, statementTimeoutMs: 120_000 };
const LIMIT = 50;
const DEEP = 100;

const FIGURES = [
  "inbox: waiting",
  "inbox: waiting by reason",
  "inbox: needs review by reason",
  "outbox: waiting",
  "outbox: not done",
  "outbox: in review",
  "calls in review",
  "sweeps",
  "gaps of a day",
  "open discrepancies",
  "heartbeats",
  "last hour: received",
  "last hour: settled",
  "last hour: seconds",
  "last day: counted until",
  "last day: hours",
];

export async function questions(db: Connection, client: Client): Promise<readonly Question[]> {
  await forgetHours(client);
  return [
    { what: "all figures", names: FIGURES, ask: (asked) => readFigures(asked, TIMEOUTS) },
    {
      what: "count an hour",
      names: ["hour: begin", "hour: advance", "hour: count"],
      ask: (asked) => countHour(asked, "count", TIMEOUTS),
      once: true,
    },
    await oneEvent(client),
    ...RECORDS,
    ...Object.entries(await filters(client)).map(([what, filter]) => list(what, filter, null)),
    record("list: waiting, the oldest first", (asked) =>
      listEvents(asked, { state: "waiting" }, { ...NEWEST, order: "oldest" }, TIMEOUTS),
    ),
    record("list: all, the oldest first", (asked) =>
      listEvents(asked, {}, { ...NEWEST, order: "oldest" }, TIMEOUTS),
    ),
    list(`list: all, page ${DEEP}`, {}, await placeOf(db, {}, DEEP)),
    list(
      `list: needs review, page ${DEEP}`,
      { state: "needs_review" },
      await placeOf(db, { state: "needs_review" }, DEEP),
    ),
    list(
      `list: processed, page ${DEEP}`,
      { state: "processed" },
      await placeOf(db, { state: "processed" }, DEEP),
    ),
  ];
}

const NEWEST = { order: "newest", limit: LIMIT, after: null } as const;

function record(what: string, ask: Question["ask"]): Question {
  return { what, names: [what], ask };
}

const RECORDS: readonly Question[] = [
  ...(["waiting", "not_done", "needs_review", "done"] as const).map((state) =>
    record(`messages: ${state}`, (db) => listMessages(db, { state }, NEWEST, TIMEOUTS)),
  ),
  record("discrepancies: open", (db) => listDiscrepancies(db, { open: true }, NEWEST, TIMEOUTS)),
  record("actions", (db) => listActions(db, NEWEST, TIMEOUTS)),
  record("gaps", (db) => listGaps(db, NEWEST, TIMEOUTS)),
  record("count to requeue: a reason", (db) =>
    countRequeueable(db, { reason: "TypeError" }, MOST_COUNTED, TIMEOUTS),
  ),
  record("count to requeue: ignored", (db) =>
    countRequeueable(db, { ignoredReason: "livemode" }, MOST_COUNTED, TIMEOUTS),
  ),
  record("count to send again: a reason", (db) =>
    countResendable(db, { reason: "Uncertain" }, MOST_COUNTED, TIMEOUTS),
  ),
  record("count to send again: not done", (db) =>
    countResendable(db, { leftHoursAgo: 96 }, MOST_COUNTED, TIMEOUTS),
  ),
];

const TRACING = { statements: traceStatements, read: readTrace };

async function oneEvent(client: Client): Promise<Question> {
  const { rows } = await client.query<{ id: string }>(
    `select event_id as id from webhook_inbox
     where endpoint = 'billing' and event_type = 'invoice.paid' order by received_at desc limit 1`,
  );
  const key = { endpoint: "billing", eventId: rows[0]?.id ?? "" };
  const parts = ["itself", "swept", "actions", "invoice", "entries", "messages", "discrepancies"];
  return {
    what: "one event",
    names: parts.map((part) => `one event: ${part}`),
    ask: (db) => inspectEvent(db, key, "excerpt", TRACING, TIMEOUTS),
  };
}

function list(what: string, filter: EventFilter, after: Place | null): Question {
  const ask = (db: Connection) => listEvents(db, filter, { ...NEWEST, after }, TIMEOUTS);
  return { what, names: [what], ask };
}

async function placeOf(db: Connection, filter: EventFilter, pages: number): Promise<Place | null> {
  let place: Place | null = null;
  for (let page = 1; page < pages; page++) {
    const { next } = await listEvents(db, filter, { ...NEWEST, after: place }, TIMEOUTS);
    if (!next) break;
    place = next;
  }
  return place;
}

async function filters(client: Client): Promise<Readonly<Record<string, EventFilter>>> {
  const { rows } = await client.query<Record<"event" | "object" | "customer", string>>(
    `select bench.id('evt', rows / 2) as event, bench.invoice(rows * 19 / 200) as object,
       bench.customer(rows * 19 / 200) as customer from bench.plan`,
  );
  const [{ event, object, customer } = { event: "", object: "", customer: "" }] = rows;
  const oldDay = { since: daysAgo(61), until: daysAgo(60) };
  return {
    "list: all": {},
    "list: waiting": { state: "waiting" },
    "list: needs review": { state: "needs_review" },
    "list: ignored": { state: "ignored" },
    "list: processed": { state: "processed" },
    "list: needs review, a reason": { state: "needs_review", reason: "TypeError" },
    "list: needs review, a type": { state: "needs_review", type: "invoice.voided" },
    "list: waiting, a reason": { state: "waiting", reason: "RangeError" },
    "list: ignored, a reason": { state: "ignored", reason: "livemode" },
    "list: waiting, a reason that never was": { state: "waiting", reason: "XX000" },
    "list: the small endpoint": { endpoint: "connect" },
    "list: the large endpoint": { endpoint: "billing" },
    "list: the large endpoint, processed": { endpoint: "billing", state: "processed" },
    "list: a type, processed": { type: "invoice.paid", state: "processed" },
    "list: a type that is always ignored, processed": { type: RARE_TYPE, state: "processed" },
    "list: a type": { type: "invoice.paid" },
    "list: a rare type": { type: RARE_TYPE },
    "list: a type that is never ignored, ignored": { type: "invoice.updated", state: "ignored" },
    "list: an old day": oldDay,
    "list: an old day, processed": { ...oldDay, state: "processed" },
    "list: an old day, ignored": { ...oldDay, state: "ignored" },
    "list: an event": { eventId: event },
    "list: an invoice": { objectId: object },
    "list: a customer's events": { objects: objectsOfCustomer(customer) },
  };
}

function daysAgo(days: number): Date {
  return new Date(Date.now() - days * 86_400_000);
}

/** So that some of the last are to be counted. */
async function forgetHours(client: Client): Promise<void> {
  await client.query(
    `delete from inbox_hours where hour >= date_trunc('hour', now()) - interval '3 hours'`,
  );
  await client.query(
    `update heartbeats set detail = jsonb_build_object('until',
       date_trunc('hour', now()) - interval '3 hours') where name = 'hours'`,
  );
}

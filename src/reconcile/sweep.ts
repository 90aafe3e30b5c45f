/**
 * Stripe's list of events against the inbox: what was never delivered is stored, as due, for the
 * ordinary loop, and its gap put on record. A walk goes page by page, each recorded with what it
 * brought, so that it can end anywhere and be gone on with.
 *
 * The list holds what happened in the last 30 days in the account that is asked for, and no thin
 * (v2) notification: https://docs.stripe.com/api/events/list
 */
import { sql } from "drizzle-orm";
import type { Connection, Row, Write } from "../db/connect.ts";
import { sqlStateOf } from "../db/postgres-errors.ts";
import { webhookInbox as inbox } from "../db/schema.ts";
import { inOneFlight, type Timeouts } from "../db/transaction.ts";
import { concerns, type EndpointRules } from "../inbox/rules.ts";
import { store } from "../inbox/transitions.ts";
import { errorClass, log } from "../log.ts";
import { CallFailed } from "../stripe/call-failed.ts";
import {
  type EventQuery,
  LIST_STANDS_STILL,
  LARGEST_PAGE,
  type ListedEvent,
  type ListEvents,
} from "../stripe/lists.ts";
import { eventFromApi } from "../stripe/verify.ts";
import * as sweepRuns from "./sweep-runs.ts";
import { type ClaimedRun, OWN_ACCOUNT, type Reach } from "./sweep-runs.ts";

export interface SweepPolicy {
  readonly reach: Reach;
  /** Whose lists are walked, beside that of the key's own account. */
  readonly connectedAccounts: readonly string[];
  readonly timeouts: Timeouts;
  /** Longer than a page takes. */
  readonly leaseSeconds: number;
  readonly backoffCapSeconds: number;
}

export interface SweptPage {
  readonly account: string;
  readonly events: number;
  /** The gaps that were put on record, of one endpoint each. */
  readonly gaps: readonly Gap[];
  /** Null: it was the last page, or somebody else walks on. */
  readonly next: ClaimedRun | null;
}

export interface Gap {
  readonly endpoint: string;
  readonly id: string;
  readonly type: string;
  readonly lateSeconds: number;
}

/** There was no page. */
export interface SweepFailed {
  readonly account: string;
  /** A class or code. */
  readonly error: string;
  /** Whether it is Stripe that failed, and not we. */
  readonly byStripe: boolean;
}

/** After a page that left no record: it may have been too much for the Worker's memory. */
const CAREFUL_PAGE = 10;
/** Stripe's list ends 30 days back: that leaves some days to do something about it. */
const OVERDUE_DAYS = 25;

/** Begins the walks that are due, and claims one that may go on; null: there is none. */
export async function claimSweep(db: Connection, policy: SweepPolicy): Promise<ClaimedRun | null> {
  const accounts = [OWN_ACCOUNT, ...policy.connectedAccounts];
  const [, claimed] = await inOneFlight(db, policy.timeouts, [
    sweepRuns.beginRuns(accounts, policy.reach),
    sweepRuns.claimRun(accounts, policy.reach, policy.leaseSeconds),
  ]);
  const row = claimed?.[0];
  return row ? toRun(row) : null;
}

/** One page of a walk that is ours: what is missing is stored, and the page recorded with it. */
export async function sweepPage(
  db: Connection,
  run: ClaimedRun,
  list: ListEvents,
  endpoints: readonly EndpointRules[],
  policy: SweepPolicy,
): Promise<SweptPage | SweepFailed> {
  try {
    return await walkPage(db, run, list, endpoints, policy);
  } catch (error) {
    if (db.isLost()) throw error;
    return fail(db, run, error, policy);
  }
}

async function walkPage(
  db: Connection,
  run: ClaimedRun,
  list: ListEvents,
  endpoints: readonly EndpointRules[],
  { timeouts, leaseSeconds }: SweepPolicy,
): Promise<SweptPage> {
  const ours = endpoints.filter(
    ({ accounts }) => (accounts === "own") === (run.account === OWN_ACCOUNT),
  );
  const page = await list(queryOf(run, ours));
  const wanted = page.events.flatMap((event) => destinations(event, run, ours));
  if (wanted.length === 0) assertRightMode(page.events, run, ours);
  const known = await readKnown(db, wanted, timeouts);
  const missing = wanted.filter(
    ({ endpoint, event }) => !known.has(keyOf(endpoint.name, event.id)),
  );
  const stores = missing.flatMap((one) => storeMissing(one, run) ?? []);
  const unusable = page.unusable + missing.length - stores.length;
  if (unusable > 0) log("error", "sweep_unusable", { account: run.account, events: unusable });
  const [recorded, ...gaps] = await inOneFlight(db, timeouts, [
    sweepRuns.recordPage(
      run,
      { events: page.events.length, missing: stores.length, unusable, cursor: page.next },
      leaseSeconds,
    ),
    ...stores,
  ]);
  const goesOn = page.next !== null && recorded?.[0] !== undefined;
  return {
    account: run.account,
    events: page.events.length,
    gaps: gaps.flat().map(toGap),
    next: goesOn ? { ...run, cursor: page.next, crashed: false } : null,
  };
}

/** Leaves a walk where it is, for whoever comes next. */
export async function releaseSweep(
  db: Connection,
  run: ClaimedRun,
  { timeouts }: SweepPolicy,
): Promise<void> {
  await inOneFlight(db, timeouts, [sweepRuns.releaseRun(run)]);
}

/** Has an account swept from then on, at once. */
export async function requestSweep(
  db: Connection,
  account: string,
  since: Date,
  timeouts: Timeouts,
): Promise<"requested" | "nothing to sweep yet" | "unknown account"> {
  if (account !== OWN_ACCOUNT) {
    const [known] = await inOneFlight(db, timeouts, [sweepRuns.isKnown(account)]);
    if (!known?.[0]) return "unknown account";
  }
  const [requested] = await inOneFlight(db, timeouts, [sweepRuns.requestRun(account, since)]);
  return requested?.[0] ? "requested" : "nothing to sweep yet";
}

/** The accounts of which no complete sweep has seen the last weeks: soon nobody can any more. */
export async function findOverdue(
  db: Connection,
  policy: SweepPolicy,
): Promise<readonly { account: string; days: number; error: string | null }[]> {
  const accounts = [OWN_ACCOUNT, ...policy.connectedAccounts];
  const overdue = sweepRuns.overdueAccounts(accounts, OVERDUE_DAYS);
  const [rows = []] = await inOneFlight(db, policy.timeouts, [overdue]);
  return rows.map((row) => ({
    account: String(row["account"]),
    days: Number(row["days"]),
    error: typeof row["error"] === "string" ? row["error"] : null,
  }));
}

function queryOf(
  { account, windowFrom, windowTo, cursor, crashed }: ClaimedRun,
  endpoints: readonly EndpointRules[],
): EventQuery {
  const types = new Set(endpoints.flatMap(({ handlers }) => Object.keys(handlers)));
  return {
    account: account === OWN_ACCOUNT ? null : account,
    from: windowFrom,
    to: windowTo,
    after: cursor,
    types: [...types],
    limit: crashed ? CAREFUL_PAGE : LARGEST_PAGE,
  };
}

async function fail(
  db: Connection,
  run: ClaimedRun,
  error: unknown,
  { timeouts, backoffCapSeconds }: SweepPolicy,
): Promise<SweepFailed> {
  const call = error instanceof CallFailed ? error : null;
  const code = call?.code ?? sqlStateOf(error) ?? errorClass(error);
  await inOneFlight(db, timeouts, [
    sweepRuns.recordSweepFailure(run, {
      code,
      retryAfterSeconds: call?.retryAfterSeconds ?? 0,
      backoffCapSeconds,
      fromTheStart: call?.kind === "refused" || call?.code === LIST_STANDS_STILL,
    }),
  ]);
  return { account: run.account, error: code, byStripe: call !== null };
}

interface Destination {
  readonly endpoint: EndpointRules;
  readonly event: ListedEvent;
}

/** The endpoints that Stripe should have sent the event to, and which have a handler for it. */
function destinations(
  event: ListedEvent,
  { account }: ClaimedRun,
  endpoints: readonly EndpointRules[],
): readonly Destination[] {
  const traits = { ...event, thin: false, connected: account !== OWN_ACCOUNT };
  return endpoints
    .filter((endpoint) => concerns(endpoint, traits))
    .map((endpoint) => ({ endpoint, event }));
}

/**
 * A key of Stripe's other mode lists events that no endpoint takes: such a sweep would come to its
 * end, and have seen nothing.
 *
 * @throws CallFailed
 */
function assertRightMode(
  events: readonly ListedEvent[],
  run: ClaimedRun,
  endpoints: readonly EndpointRules[],
): void {
  const inBothModes = endpoints.map((endpoint) => ({ ...endpoint, livemode: null }));
  if (events.some((event) => destinations(event, run, inBothModes).length > 0)) {
    throw new CallFailed("no access", "WrongMode");
  }
}

async function readKnown(
  db: Connection,
  wanted: readonly Destination[],
  timeouts: Timeouts,
): Promise<ReadonlySet<string>> {
  if (wanted.length === 0) return new Set();
  const keys = wanted.map(({ endpoint, event }) => sql`(${endpoint.name}, ${event.id})`);
  const read = sql`select endpoint, event_id from ${inbox}
    where ${inbox.provider} = 'stripe'
      and (${inbox.endpoint}, ${inbox.eventId}) in (${sql.join(keys, sql`, `)})`;
  const [rows = []] = await inOneFlight(db, timeouts, [read]);
  return new Set(rows.map((row) => keyOf(String(row["endpoint"]), String(row["event_id"]))));
}

/** @returns null for what the receiver would not take either. */
function storeMissing({ endpoint, event: listed }: Destination, run: ClaimedRun): Write | null {
  const event = eventFromApi(listed.json());
  if ("invalid" in event) {
    log("error", "sweep_unusable", {
      id: listed.id,
      endpoint: endpoint.name,
      detail: event.detail,
    });
    return null;
  }
  const gap = { endpoint: endpoint.name, event: listed };
  return sweepRuns.recordGap(store({ endpoint, event }, null), gap, run);
}

function toGap(row: Row): Gap {
  return {
    endpoint: String(row["endpoint"]),
    id: String(row["event_id"]),
    type: String(row["event_type"]),
    lateSeconds: Number(row["late_seconds"]),
  };
}

function keyOf(endpoint: string, eventId: string): string {
  return `${endpoint} ${eventId}`;
}

function toRun(row: Row): ClaimedRun {
  const { cursor } = row;
  return {
    id: Number(row["id"]),
    fence: Number(row["fence"]),
    account: String(row["account"]),
    windowFrom: Number(row["window_from"]),
    windowTo: Number(row["window_to"]),
    cursor: typeof cursor === "string" ? cursor : null,
    crashed: row["crashed"] === true,
  };
}

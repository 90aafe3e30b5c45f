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
import { webhookInbox as inbox } from "../db/schema.ts";
import { inOneFlight, type Timeouts } from "../db/transaction.ts";
import { concerns, type EndpointRules } from "../inbox/rules.ts";
import { store } from "../inbox/transitions.ts";
import { log } from "../log.ts";
import { CallFailed } from "../stripe/api.ts";
import type { EventPage, ListedEvent, ListEvents } from "../stripe/lists.ts";
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
  readonly missing: number;
  /** Null: it was the last page. */
  readonly next: ClaimedRun | null;
  /** Why there was no page, if there was none. */
  readonly error: string | null;
}

/** Stripe's list ends 30 days back: that leaves some days to do something about it. */
const OVERDUE_DAYS = 25;

/** Begins the walks that are due, and claims one that may go on; null: there is none. */
export async function claimSweep(db: Connection, policy: SweepPolicy): Promise<ClaimedRun | null> {
  const accounts = [OWN_ACCOUNT, ...policy.connectedAccounts];
  const [, claimed] = await inOneFlight(db, policy.timeouts, [
    sweepRuns.beginRuns(accounts, policy.reach),
    sweepRuns.claimRun(accounts, policy.leaseSeconds),
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
): Promise<SweptPage> {
  const { timeouts, leaseSeconds } = policy;
  const page = await readPage(list, run, endpoints);
  if (page instanceof CallFailed) return fail(db, run, page, policy);

  const wanted = page.events.flatMap((event) => destinations(event, run, endpoints));
  const known = await readKnown(db, wanted, timeouts);
  const missing = wanted.filter(
    ({ endpoint, event }) => !known.has(keyOf(endpoint.name, event.id)),
  );
  const stores = missing.flatMap((one) => storeMissing(one, run));
  const cursor = page.events.at(-1)?.id ?? null;
  const complete = !page.more || cursor === null;
  const [recorded, ...gaps] = await inOneFlight(db, timeouts, [
    sweepRuns.recordPage(
      run,
      { events: page.events.length, missing: missing.length, cursor, complete },
      leaseSeconds,
    ),
    ...stores,
  ]);
  for (const gap of gaps.flat()) logGap(gap);
  // Somebody else walks on, if the record was not ours to make.
  const next = complete || !recorded?.[0] ? null : { ...run, cursor };
  const { account } = run;
  return { account, events: page.events.length, missing: gaps.flat().length, next, error: null };
}

/** Leaves a walk where it is, for whoever comes next. */
export async function releaseSweep(
  db: Connection,
  run: ClaimedRun,
  { timeouts }: SweepPolicy,
): Promise<void> {
  await inOneFlight(db, timeouts, [sweepRuns.releaseRun(run)]);
}

/** Has an account swept from then on, at once. @returns false when there is nothing to sweep yet. */
export async function requestSweep(
  db: Connection,
  account: string,
  since: Date,
  timeouts: Timeouts,
): Promise<boolean> {
  const [requested] = await inOneFlight(db, timeouts, [sweepRuns.requestRun(account, since)]);
  return requested?.[0] !== undefined;
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

async function readPage(
  list: ListEvents,
  { account, windowFrom, windowTo, cursor }: ClaimedRun,
  endpoints: readonly EndpointRules[],
): Promise<EventPage | CallFailed> {
  const types = new Set(endpoints.flatMap(({ handlers }) => Object.keys(handlers)));
  try {
    return await list({
      account: account === OWN_ACCOUNT ? null : account,
      from: windowFrom,
      to: windowTo,
      after: cursor,
      types: [...types],
    });
  } catch (error) {
    if (error instanceof CallFailed) return error;
    throw error;
  }
}

async function fail(
  db: Connection,
  run: ClaimedRun,
  { kind, code, retryAfterSeconds }: CallFailed,
  { timeouts, backoffCapSeconds }: SweepPolicy,
): Promise<SweptPage> {
  await inOneFlight(db, timeouts, [
    sweepRuns.recordSweepFailure(run, {
      code,
      retryAfterSeconds: retryAfterSeconds ?? 0,
      backoffCapSeconds,
      fromTheStart: kind === "refused" && run.cursor !== null,
    }),
  ]);
  return { account: run.account, events: 0, missing: 0, next: null, error: code };
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

function storeMissing({ endpoint, event: listed }: Destination, run: ClaimedRun): Write[] {
  const event = eventFromApi(listed.json());
  if ("invalid" in event) {
    log("error", "sweep_unusable", {
      id: listed.id,
      endpoint: endpoint.name,
      detail: event.detail,
    });
    return [];
  }
  return [
    sweepRuns.recordGap(
      store({ endpoint, event }, null),
      { endpoint: endpoint.name, event: listed },
      run,
    ),
  ];
}

function logGap(gap: Row): void {
  log("warn", "sweep_gap", {
    endpoint: String(gap["endpoint"]),
    id: String(gap["event_id"]),
    type: String(gap["event_type"]),
    late_seconds: Number(gap["late_seconds"]),
  });
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
  };
}

/**
 * One tick: parks what crashed for the last time, then claims and processes until nothing is due or
 * the budget is spent; then sends the messages that are due, and asks Stripe what was missed. Ticks
 * may overlap; claims are disjoint.
 *
 * Fresh events come first, on a few connections at a time. Suspects, which may have killed the
 * Worker that last had them, follow one by one with nothing else under way, so that one of them
 * costs nobody but itself.
 */
import { type Env, readSettings, readStripeApi, type Settings } from "./config.ts";
import type { Connection } from "./db/connect.ts";
import { DatabaseUnavailable } from "./db/unavailable.ts";
import { withConnection } from "./db/with-connection.ts";
import { type Endpoints, rulesOf } from "./endpoints.ts";
import { explain } from "./faults.ts";
import { processEach } from "./inbox/apart.ts";
import { type Done, processBatch } from "./inbox/batch.ts";
import { MOST_AT_ONCE } from "./inbox/decide.ts";
import { claimDue, type DueClaim, parkCrashed, release } from "./inbox/claim.ts";
import { processAndLog, type Processed, type ProcessPolicy } from "./inbox/process.ts";
import { classify } from "./inbox/retry.ts";
import type { EndpointRules } from "./inbox/rules.ts";
import type { Claim } from "./inbox/transitions.ts";
import { type Fields, log } from "./log.ts";
import { dispatchBatch, parkCrashedMessages, sendTo } from "./outbox/dispatch.ts";
import { type FetchThin, thinFetcher } from "./stripe/thin.ts";
import { sweep } from "./sweeping.ts";

export type TickCounts = Record<
  | Processed["outcome"]
  | "unavailable"
  | "crashed"
  | "released"
  | "published"
  | "unsent"
  | "messages_in_review",
  number
>;

export interface Ticked {
  readonly counts: TickCounts;
  /** Null: it did not fail. */
  readonly fault: Fields | null;
}

/** Until when, in shares of the budget, so that each kind of work gets some. */
const FRESH_UNTIL = 0.6;
const SUSPECTS_UNTIL = 0.7;
const MESSAGES_UNTIL = 0.85;
/** Kept free, of a lease, to record a failure. */
const RECORDING_MS = 2_000;

export async function tick(
  endpoints: Endpoints,
  env: Env,
  afterwards: (rest: Promise<unknown>) => void,
): Promise<Ticked> {
  const startedAt = Date.now();
  const counts = noCounts();
  try {
    const settings = readSettings(env);
    const fetch = thinFetcher(() => readStripeApi(env));
    await work(endpoints, settings, fetch, counts, afterwards);
    const paused = settings.processing ? undefined : true;
    log("info", "tick", { ...counts, paused, ms: Date.now() - startedAt });
    return { counts, fault: null };
  } catch (caught) {
    const fault = explain(caught);
    log("error", "tick", { ...counts, ...fault, ms: Date.now() - startedAt });
    return { counts, fault };
  }
}

async function work(
  endpoints: Endpoints,
  settings: Settings,
  fetch: FetchThin,
  counts: TickCounts,
  afterwards: (rest: Promise<unknown>) => void,
): Promise<void> {
  const { database, retry, process } = settings;
  const endsAt = Date.now() + process.tickBudgetMs;
  const rules = new Map(
    Object.entries(endpoints).map(([name, endpoint]) => [name, rulesOf(name, endpoint, settings)]),
  );
  const deadlineMs = process.tickBudgetMs + process.timeouts.statementTimeoutMs + RECORDING_MS;
  const onConnection = (use: (db: Connection) => Promise<void>): Promise<void> =>
    withConnection(database, { deadlineMs, afterwards }, ({ db }) => use(db));
  const drain = (which: "fresh" | "suspects", limit: number, until: number) =>
    onConnection((db) => drainLane(db, { which, limit, until, rules, settings, fetch, counts }));

  const atShare = (share: number): number => endsAt - process.tickBudgetMs * (1 - share);
  const drainAll = async (): Promise<void> => {
    await onConnection(async (db) => {
      counts.crashed = await parkCrashed(db, retry.maxAttempts, process.timeouts);
    });
    const lanes = Array.from({ length: lanesFor(process.concurrency, rules) }, () =>
      drain("fresh", process.claimBatch, atShare(FRESH_UNTIL)),
    );
    throwFirst(await Promise.allSettled(lanes));
    await drain("suspects", 1, atShare(SUSPECTS_UNTIL));
  };
  // Trouble with events keeps no message from leaving, nor a sweep from finding what was missed.
  const drained = await Promise.allSettled([settings.processing ? drainAll() : undefined]);
  if (settings.sweep || (settings.processing && settings.dispatch)) {
    await onConnection(async (db) => {
      const dispatching = dispatch(db, settings, atShare(MESSAGES_UNTIL), counts);
      const dispatched = await Promise.allSettled([dispatching]);
      await sweep(db, [...rules.values()], settings, endsAt);
      throwFirst(dispatched);
    });
  }
  throwFirst(drained);
}

/** Of a Worker's six connections, one is left to ask Stripe for what notifications name. */
function lanesFor(concurrency: number, rules: ReadonlyMap<string, EndpointRules>): number {
  const asks = [...rules.values()].some(({ thinHandlers }) => thinHandlers);
  return asks ? Math.min(concurrency, 5) : concurrency;
}

function throwFirst(settled: readonly PromiseSettledResult<unknown>[]): void {
  const failed = settled.find(({ status }) => status === "rejected");
  if (failed?.status === "rejected") throw failed.reason;
}

async function dispatch(
  db: Connection,
  { dispatch: dispatching, processing, process: { timeouts } }: Settings,
  until: number,
  counts: TickCounts,
): Promise<void> {
  if (!dispatching || !processing) return;
  const policy = { ...dispatching, timeouts };
  counts.messages_in_review = await parkCrashedMessages(db, policy);
  while (Date.now() < until) {
    const sent = await dispatchBatch(db, sendTo(dispatching.queue), policy);
    if (sent === null) return;
    counts.published += sent.published;
    counts.unsent += sent.unsent;
    counts.messages_in_review += sent.parked;
    // The queue may be down: the others keep their attempts for the next tick.
    if (sent.refused > 0) return;
  }
}

interface Lane {
  readonly which: "fresh" | "suspects";
  readonly limit: number;
  /** When to stop, in epoch milliseconds. */
  readonly until: number;
  readonly rules: ReadonlyMap<string, EndpointRules>;
  readonly settings: Settings;
  readonly fetch: FetchThin;
  readonly counts: TickCounts;
}

/** In epoch milliseconds. */
interface Time {
  readonly leaseEnd: number;
  /** Until when an event may be begun. */
  readonly beginUntil: number;
}

/** Claims and processes until nothing is due or the time is over. */
async function drainLane(db: Connection, lane: Lane): Promise<void> {
  const { which, limit, until, settings, counts } = lane;
  const { timeouts, leaseSeconds } = settings.process;
  while (Date.now() < until) {
    const leaseEnd = Date.now() + leaseSeconds * 1_000;
    const claims = await claimDue(db, which, limit, { timeouts, leaseSeconds });
    if (claims.length === 0) return;
    // An event is begun only while its lease outlives the longest statement.
    const beginUntil = Math.min(until, leaseEnd - timeouts.statementTimeoutMs - RECORDING_MS);
    const time = { leaseEnd, beginUntil };
    const singly = await processAtOnce(db, claims, time, lane);
    // Of each claim, something is begun.
    const isFirst = singly.length === claims.length;
    const left = await processInTurn(db, singly, isFirst, time, lane);
    await release(db, left, timeouts);
    counts.released += left.length;
  }
}

type Left = Done["left"];

/**
 * As many together as it can be done with. Those that nobody has worked on share a transaction: what
 * failed before is likely to fail again, and others with it.
 *
 * @returns those that are to be processed one by one, those that failed first.
 */
async function processAtOnce(
  db: Connection,
  claims: readonly DueClaim[],
  { leaseEnd, beginUntil }: Time,
  { rules, settings, fetch, counts }: Lane,
): Promise<Left> {
  const { timeouts } = policyOf(settings, fetch, leaseEnd);
  const failed: Left[number][] = [];
  const untried: Claim[] = claims.filter(({ isFirst }) => !settings.process.batches || !isFirst);
  const tally = ({ left, ...done }: Done): void => {
    throwIfLost(db);
    counts.processed += done.processed;
    counts.ignored += done.ignored;
    counts.taken += done.taken;
    for (const one of left) {
      if (one.tried) failed.push(one);
      else untried.push(one.claim);
    }
  };
  const first = claims.filter((claim) => !untried.includes(claim));
  for (const batch of slices(first, MOST_AT_ONCE)) {
    if (batch.length > 1) tally(await processBatch(db, batch, rules, timeouts));
    else untried.push(...batch);
  }
  const alone: Claim[] = [];
  for (const slice of slices(untried.splice(0), MOST_APART)) {
    const isWorth = slice.length > 1 && db.pipelines && Date.now() < beginUntil;
    if (isWorth) tally(await processEach(db, slice, rules, timeouts));
    else alone.push(...slice);
  }
  return [...failed, ...[...untried, ...alone].map((claim) => ({ claim, tried: null }))];
}

/** Each may wait for a lock, and those behind it with it. */
const MOST_APART = 25;

function slices<T>(all: readonly T[], size: number): T[][] {
  const count = Math.ceil(all.length / size);
  return Array.from({ length: count }, (_, n) => all.slice(n * size, (n + 1) * size));
}

/** @returns the claims that there was no time for. */
async function processInTurn(
  db: Connection,
  all: Left,
  isFirst: boolean,
  { leaseEnd, beginUntil }: Time,
  { rules, settings, fetch, counts }: Lane,
): Promise<readonly Claim[]> {
  const policy = policyOf(settings, fetch, leaseEnd);
  const left: Claim[] = [];
  for (const [index, { claim, tried }] of all.entries()) {
    // A failure that happened goes on record; who was kept waiting can come again.
    const isToRecord = tried !== null && classify(tried.error).kind !== "contention";
    const isExempt = isToRecord || (isFirst && index === 0);
    if (!isExempt && Date.now() >= beginUntil) {
      left.push(claim);
      continue;
    }
    counts[await processAndLog(db, claim, rules, policy, true, tried)] += 1;
    throwIfLost(db);
  }
  return left;
}

function policyOf({ process, retry }: Settings, fetch: FetchThin, leaseEnd: number): ProcessPolicy {
  const workMs = (): number => leaseEnd - Date.now() - RECORDING_MS;
  return { ...retry, timeouts: { ...process.timeouts, remainingMs: workMs }, workMs, fetch };
}

function throwIfLost(db: Connection): void {
  if (db.isLost()) throw new DatabaseUnavailable("the connection was lost");
}

function noCounts(): TickCounts {
  return {
    processed: 0,
    ignored: 0,
    failed: 0,
    needs_review: 0,
    taken: 0,
    unavailable: 0,
    crashed: 0,
    released: 0,
    published: 0,
    unsent: 0,
    messages_in_review: 0,
  };
}

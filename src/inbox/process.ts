/**
 * One event, in the transaction that settles it: judged by its endpoint's rules, and worked on by
 * its handler.
 */
import type { Connection, Row, Tx } from "../db/connect.ts";
import { DatabaseUnavailable } from "../db/unavailable.ts";
import { isNameTrouble } from "../db/postgres-errors.ts";
import { type Ending, type Timeouts, inOneFlight, inTransaction } from "../db/transaction.ts";
import { log } from "../log.ts";
import { eventFromInbox, type VerifiedEvent } from "../stripe/verify.ts";
import type { FetchThin, Wanted } from "../stripe/thin.ts";
import { askHandler, type Handler, NoTimeLeft, withFetched } from "./handler.ts";
import { classify, LOCK_TIMED_OUT, parksAtAttempt, PermanentError } from "./retry.ts";
import { type EndpointRules, type IgnoredReason, judge, type Verdict } from "./rules.ts";
import * as transitions from "./transitions.ts";
import type { Claim, Delivery } from "./transitions.ts";

export type Settled =
  | { readonly outcome: "processed" }
  | { readonly outcome: "ignored"; readonly ignored: IgnoredReason };

/** What was fetched for a notification, with no transaction open. */
interface Ahead {
  readonly fetched: object | null;
}

/** How the transaction ends in which the event was marked as processed. */
export async function workOn(
  verdict: Verdict,
  delivery: Delivery,
  tx: Tx,
  withinMs: number,
  ahead: Ahead | null = null,
): Promise<Ending<Settled>> {
  if ("ignored" in verdict) {
    const { ignored } = verdict;
    return {
      commit: [transitions.settleAsIgnored(transitions.keyOf(delivery), ignored)],
      value: { outcome: "ignored", ignored },
    };
  }
  const writes = await askHandler(handlerOf(verdict, ahead), delivery.event, tx, withinMs);
  return { commit: writes, value: { outcome: "processed" } };
}

function handlerOf(verdict: Exclude<Verdict, { ignored: unknown }>, ahead: Ahead | null): Handler {
  if ("handler" in verdict) return verdict.handler;
  if (!ahead) throw new Error("Bug! What a notification asks for is fetched first.");
  return withFetched(verdict.thinHandler, ahead.fetched);
}

/** The handler gets exactly what is stored: for an earlier row, that is the first delivery's. */
export function storedEvent(row: Row, event: VerifiedEvent): VerifiedEvent {
  const { stored } = row;
  return typeof stored === "string"
    ? eventFromInbox(stored, row["payload_altered"] === true)
    : event;
}

export type Processed =
  | Settled
  /** Somebody else claimed it, settled it or requeued it: not ours any more. */
  | { readonly outcome: "taken" }
  | { readonly outcome: "failed" | "needs_review"; readonly error: string };

export interface ProcessPolicy {
  readonly timeouts: Timeouts;
  readonly maxAttempts: number;
  readonly backoffCapSeconds: number;
  /** How long a handler may take, from now. */
  readonly workMs: () => number;
  /** Asks Stripe for what a notification names. */
  readonly fetch: FetchThin;
}

/** How it went when it was tried before, in the same attempt. */
export interface Tried {
  readonly error: unknown;
}

const TRIES_IN_ONE_ATTEMPT = 4;
/** Of its time, whatever Stripe takes. */
const KEPT_FOR_HANDLER_MS = 2_000;

/**
 * Processes a claimed event, in two round trips: the mark takes the row's lock, checks that it is
 * still ours, and reads the payload, in one statement. Where a notification asks for something, all of
 * that is undone first, then done again with what was fetched.
 *
 * @param tried the first try, where it was made already.
 * @throws DatabaseUnavailable when not even the failure could be recorded: the lease will end.
 */
export async function processClaim(
  db: Connection,
  claim: Claim,
  endpoints: ReadonlyMap<string, EndpointRules>,
  policy: ProcessPolicy,
  tried: Tried | null = null,
): Promise<Processed> {
  let ahead: Ahead | null = null;
  for (let attempt = 1; ; attempt++) {
    try {
      if (attempt === 1 && tried) throw tried.error;
      let processed = await processOnce(db, claim, endpoints, policy, ahead);
      if ("wanted" in processed) {
        ahead = { fetched: await fetchAhead(processed, policy) };
        processed = await processOnce(db, claim, endpoints, policy, ahead);
      }
      if ("wanted" in processed) throw new Error("Bug! What was wanted is there.");
      return processed;
    } catch (error) {
      if (error instanceof DatabaseUnavailable) throw error;
      const failure = classify(error);
      // Whoever was waited for in vain may hold on for long, and others wait behind this event.
      const inVain = failure.code === LOCK_TIMED_OUT;
      // One more wait for a lock must leave the time to record that it was in vain.
      const timeLeft = isNameTrouble(error) || policy.workMs() > policy.timeouts.lockTimeoutMs;
      const again = failure.kind === "contention" && !inVain && attempt < TRIES_IN_ONE_ATTEMPT;
      const retry = again && timeLeft;
      if (!retry) return recordFailure(db, claim, failure, policy);
    }
  }
}

function processOnce(
  db: Connection,
  claim: Claim,
  endpoints: ReadonlyMap<string, EndpointRules>,
  { timeouts, workMs }: ProcessPolicy,
  ahead: Ahead | null,
): Promise<Processed | ToFetch> {
  const opening = [transitions.mark(claim)];
  return inTransaction<Processed | ToFetch>(db, timeouts, opening, async ([marked], tx) => {
    const row = marked?.[0];
    if (!row) return { rollback: true, value: { outcome: "taken" } };
    const endpoint = endpoints.get(claim.endpoint);
    if (!endpoint) throw new PermanentError("endpoint_unknown");
    const event = eventFromInbox(String(row["stored"]), row["payload_altered"] === true);
    const verdict = judge(endpoint, event);
    if ("thinHandler" in verdict && !ahead) {
      return { rollback: "awaited", value: { wanted: verdict.thinHandler.fetch, event } };
    }
    return workOn(verdict, { endpoint, event }, tx, workMs(), ahead);
  });
}

/** Nothing was done yet, and no transaction is open. */
interface ToFetch {
  readonly wanted: Wanted;
  readonly event: VerifiedEvent;
}

function fetchAhead({ wanted, event }: ToFetch, policy: ProcessPolicy): Promise<object | null> {
  const withinMs = (): number => {
    const leftMs = policy.workMs();
    if (leftMs <= 0) throw new NoTimeLeft("Nothing is left of the time to ask Stripe.");
    return Math.ceil(Math.max(leftMs / 2, leftMs - KEPT_FOR_HANDLER_MS));
  };
  return policy.fetch(wanted, event, withinMs);
}

async function recordFailure(
  db: Connection,
  claim: Claim,
  { code, kind }: ReturnType<typeof classify>,
  { timeouts, maxAttempts, backoffCapSeconds }: ProcessPolicy,
): Promise<Processed> {
  const record = transitions.recordClaimedFailure(claim, {
    code,
    parksAtAttempt: parksAtAttempt(kind, maxAttempts),
    backoffCapSeconds,
  });
  try {
    const [recorded] = await inOneFlight(db, timeouts, [record]);
    const row = recorded?.[0];
    if (!row) return { outcome: "taken" };
    return { outcome: row["parked"] === true ? "needs_review" : "failed", error: code };
  } catch (cause) {
    throw new DatabaseUnavailable("a failure could not be recorded", { cause });
  }
}

/**
 * The same, with one log line, and never throwing: what could not be recorded is left to the end
 * of its lease.
 *
 * @param quiet says nothing of what went well, where a tick sums up.
 */
export async function processAndLog(
  db: Connection,
  claim: Claim,
  endpoints: ReadonlyMap<string, EndpointRules>,
  policy: ProcessPolicy,
  quiet: boolean,
  tried: Tried | null = null,
): Promise<Processed["outcome"] | "unavailable"> {
  const startedAt = Date.now();
  const line = (outcome: string, error?: string) => ({
    endpoint: claim.endpoint,
    event: claim.eventId,
    outcome,
    error,
    ms: Date.now() - startedAt,
  });
  try {
    const processed = await processClaim(db, claim, endpoints, policy, tried);
    const { outcome } = processed;
    if ("error" in processed) log("warn", "process", line(outcome, processed.error));
    else if (!quiet) log("info", "process", line(outcome));
    return outcome;
  } catch (error) {
    log("error", "process", line("unavailable", classify(error).code));
    return "unavailable";
  }
}

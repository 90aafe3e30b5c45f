/**
 * A verified delivery in; its one effect committed, and an outcome out.
 *
 * The inbox row is written in the transaction of its effects, already marked: the primary key is
 * the judge between concurrent deliveries, and nothing can be marked without being done.
 */
import type { Connection, Row, Write } from "../db/connect.ts";
import { DatabaseUnavailable } from "../db/unavailable.ts";
import { isNameTrouble } from "../db/postgres-errors.ts";
import { type Timeouts, inOneFlight, inTransaction } from "../db/transaction.ts";
import { storedEvent, workOn } from "./process.ts";
import { classify, type Failure, parksAtAttempt } from "./retry.ts";
import { type IgnoredReason, judge } from "./rules.ts";
import * as transitions from "./transitions.ts";
import type { Claim, Delivery } from "./transitions.ts";

export interface Received {
  readonly outcome: "processed" | "stored" | "duplicate" | "ignored" | "needs_review" | "failed";
  readonly ignored?: IgnoredReason;
  /** The class or SQLSTATE of what went wrong. */
  readonly error?: string;
  /** The event was settled or parked before; the row counts such deliveries. */
  readonly repeated?: true;
  /** False: `failed`, but somebody else held the row, so that it says nothing of it yet. */
  readonly recorded?: false;
}

export interface ReceivePolicy {
  readonly timeouts: Timeouts;
  readonly maxAttempts: number;
  readonly backoffCapSeconds: number;
  /** How much of the time to answer is left. */
  readonly remainingMs: () => number;
}

/** Kept free at the end, to roll back and record a failure. */
export const RECORDING_MS = 2_000;
/** Who holds the row's lock for longer is at work on it. */
const RECORDING_LOCK_TIMEOUT_MS = 1_000;
const TRIES_IN_ONE_DELIVERY = 4;

/**
 * Books one event: two round trips, or one when there is nothing to do.
 *
 * @throws DatabaseUnavailable when not even the failure could be recorded.
 */
export async function receiveSync(
  db: Connection,
  delivery: Delivery,
  policy: ReceivePolicy,
): Promise<Received> {
  const received = await tryToReceive(db, delivery, policy);
  if (received.repeated) countDuplicate(db, delivery, policy.timeouts);
  return received;
}

async function tryToReceive(
  db: Connection,
  delivery: Delivery,
  policy: ReceivePolicy,
): Promise<Received> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await receiveOnce(db, delivery, policy);
    } catch (error) {
      if (error instanceof DatabaseUnavailable) throw error;
      const failure = classify(error);
      const timeLeft =
        isNameTrouble(error) || policy.remainingMs() > policy.timeouts.lockTimeoutMs + RECORDING_MS;
      const retry = failure.kind === "contention" && attempt < TRIES_IN_ONE_DELIVERY && timeLeft;
      if (!retry) return recordFailure(db, delivery, failure, policy);
    }
  }
}

async function receiveOnce(
  db: Connection,
  delivery: Delivery,
  { timeouts, remainingMs }: ReceivePolicy,
): Promise<Received> {
  const { endpoint, event } = delivery;
  const verdict = judge(endpoint, event);
  if ("ignored" in verdict) {
    const received = await ignore(db, delivery, verdict.ignored, timeouts);
    if (received) return received;
  }
  const workMs = (): number => remainingMs() - RECORDING_MS;
  const limits = { ...timeouts, remainingMs: workMs };
  const opening = settling(delivery, null);
  return inTransaction<Received>(db, limits, opening, async ([settled, state], tx) => {
    const row = settled?.[0];
    if (!row) return { rollback: true, value: repeated(state?.[0], null) };
    const stored = storedEvent(row, event);
    return workOn(judge(endpoint, stored), { endpoint, event: stored }, tx, workMs());
  });
}

/** Null when an unsettled row is there already: then the stored event is the one to be judged. */
async function ignore(
  db: Connection,
  delivery: Delivery,
  ignored: IgnoredReason,
  timeouts: Timeouts,
): Promise<Received | null> {
  const [settled, state] = await inOneFlight(db, timeouts, settling(delivery, ignored));
  if (settled?.[0]) return { outcome: "ignored", ignored };
  return isUnsettled(state?.[0]) ? null : repeated(state?.[0], ignored);
}

/** The row as settled, and behind it the state of the key, for when it was not ours to settle. */
function settling(delivery: Delivery, ignored: IgnoredReason | null): Write[] {
  return [
    transitions.settle(delivery, ignored),
    transitions.readState(transitions.keyOf(delivery)),
  ];
}

/**
 * Stores one event, in one round trip; what is to be ignored is settled at once.
 *
 * @param leaseSeconds the event comes back as claimed for so long; null leaves it for the cron.
 * @throws DatabaseUnavailable when it could not be stored.
 */
export async function receiveAsync(
  db: Connection,
  delivery: Delivery,
  leaseSeconds: number | null,
  timeouts: Timeouts,
): Promise<{ readonly received: Received; readonly claim: Claim | null }> {
  const key = transitions.keyOf(delivery);
  try {
    const verdict = judge(delivery.endpoint, delivery.event);
    const ignored =
      "ignored" in verdict ? await ignore(db, delivery, verdict.ignored, timeouts) : null;
    const { received, claim } = ignored
      ? { received: ignored, claim: null }
      : await storeEvent(db, delivery, leaseSeconds, timeouts);
    if (received.repeated) countDuplicate(db, delivery, timeouts);
    return { received, claim };
  } catch (cause) {
    throw new DatabaseUnavailable(`${key.eventId} could not be stored`, { cause });
  }
}

async function storeEvent(
  db: Connection,
  delivery: Delivery,
  leaseSeconds: number | null,
  timeouts: Timeouts,
): Promise<{ received: Received; claim: Claim | null }> {
  const key = transitions.keyOf(delivery);
  // One transaction: between two, a pooler may hand the connection's answers to somebody else.
  const [stored, state] = await inOneFlight(db, timeouts, [
    transitions.store(delivery, leaseSeconds),
    transitions.readState(key),
  ]);
  const row = stored?.[0];
  if (row) {
    const claim = leaseSeconds === null ? null : { ...key, fence: Number(row["fence"]) };
    return { received: { outcome: "stored" }, claim };
  }
  const found = state?.[0];
  // Retention took it between the two statements.
  if (!found) return { received: { outcome: "failed", recorded: false }, claim: null };
  const waiting = isUnsettled(found);
  const received: Received = waiting
    ? { outcome: "duplicate", repeated: true }
    : repeated(found, null);
  return { received, claim: null };
}

/**
 * Counts and keeps a failure in a transaction of its own. If somebody settled or parked the event
 * in the meantime, that is the answer.
 *
 * @throws DatabaseUnavailable when it could not be recorded.
 */
async function recordFailure(
  db: Connection,
  delivery: Delivery,
  failure: Failure,
  { timeouts, maxAttempts, backoffCapSeconds }: Omit<ReceivePolicy, "remainingMs">,
): Promise<Received> {
  const error = failure.code;
  const lockTimeoutMs = Math.min(timeouts.lockTimeoutMs, RECORDING_LOCK_TIMEOUT_MS);
  const record = transitions.recordFailure(delivery, {
    code: error,
    parksAtAttempt: parksAtAttempt(failure.kind, maxAttempts),
    backoffCapSeconds,
  });
  try {
    const [recorded, state] = await inOneFlight(db, { ...timeouts, lockTimeoutMs }, [
      record,
      transitions.readState(transitions.keyOf(delivery)),
    ]);
    const row = recorded?.[0];
    if (!row) return { ...repeated(state?.[0], null), error };
    return { outcome: row["parked"] === true ? "needs_review" : "failed", error };
  } catch (cause) {
    if (classify(cause).kind === "contention") return { outcome: "failed", error, recorded: false };
    throw new DatabaseUnavailable("a failure could not be recorded", { cause });
  }
}

function isUnsettled(state: Row | undefined): boolean {
  return state?.["settled"] === false && state["parked"] === false;
}

/** What a delivery is told whose row was not its own to settle. */
function repeated(state: Row | undefined, ignored: IgnoredReason | null): Received {
  if (state?.["parked"] === true) return { outcome: "needs_review", repeated: true };
  if (state?.["settled"] !== true) {
    throw new Error("Bug! The inbox row is neither ours nor settled nor parked.");
  }
  return ignored === "test_id"
    ? { outcome: "ignored", ignored, repeated: true }
    : { outcome: "duplicate", repeated: true };
}

/** Sent, not waited for: the connection's close waits for it, the answer does not. */
function countDuplicate(db: Connection, delivery: Delivery, timeouts: Timeouts): void {
  inOneFlight(db, timeouts, [transitions.countDuplicate(transitions.keyOf(delivery))]).catch(
    () => undefined,
  );
}

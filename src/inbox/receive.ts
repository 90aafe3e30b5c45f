/**
 * A verified delivery in; its one effect committed, and an outcome out.
 *
 * The inbox row is written in the transaction of its effects, already marked: the primary key is
 * the judge between concurrent deliveries, and nothing can be marked without being done.
 */
import { type Connection, DatabaseUnavailable, type Row, type Write } from "../db/connect.ts";
import { type Ending, type Timeouts, inOneFlight, inTransaction } from "../db/transaction.ts";
import { eventFromInbox, type VerifiedEvent } from "../stripe/verify.ts";
import { askHandler } from "./process.ts";
import { classify, type Failure, parksAtAttempt } from "./retry.ts";
import { type IgnoredReason, judge } from "./rules.ts";
import * as transitions from "./transitions.ts";
import type { Delivery } from "./transitions.ts";

export interface Received {
  readonly outcome: "processed" | "duplicate" | "ignored" | "needs_review" | "failed";
  readonly ignored?: IgnoredReason;
  /** The class or SQLSTATE of what went wrong. */
  readonly error?: string;
}

export interface ReceivePolicy {
  readonly timeouts: Timeouts;
  readonly maxAttempts: number;
  readonly backoffCapSeconds: number;
  /** How much of the time to answer is left. */
  readonly remainingMs: () => number;
}

/** The row was there and is gone, or changed under us: the delivery must come again. */
class InboxRowMoved extends Error {
  override readonly name = "InboxRowMoved";
}

/** Kept free, behind a last wait for a lock, to record that it was in vain. */
const RECORDING_MS = 2_000;
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
  for (let attempt = 1; ; attempt++) {
    try {
      const received = await receiveOnce(db, delivery, policy.timeouts);
      if (received.outcome === "duplicate" || received.outcome === "needs_review") {
        countDuplicate(db, delivery, policy.timeouts);
      }
      return received;
    } catch (error) {
      if (db.isLost()) throw new DatabaseUnavailable("the connection was lost", { cause: error });
      const failure = classify(error);
      const timeLeft = policy.remainingMs() > policy.timeouts.lockTimeoutMs + RECORDING_MS;
      const retry = failure.kind === "contention" && attempt < TRIES_IN_ONE_DELIVERY && timeLeft;
      if (!retry) return recordFailure(db, delivery, failure, policy);
    }
  }
}

async function receiveOnce(
  db: Connection,
  delivery: Delivery,
  timeouts: Timeouts,
): Promise<Received> {
  const { endpoint, event } = delivery;
  const verdict = judge(endpoint, event);
  if ("ignored" in verdict) {
    const { ignored } = verdict;
    const [settled, state] = await inOneFlight(db, timeouts, settling(delivery, ignored));
    if (settled?.[0]) return { outcome: "ignored", ignored };
    if (!isUnsettled(state?.[0])) return answerFor(state?.[0], ignored);
    // What is stored under this id is of another type: it is the stored event that counts.
  }
  return inTransaction(db, timeouts, settling(delivery, null), async ([settled, state], tx) => {
    const row = settled?.[0];
    if (!row) return { rollback: true, value: answerFor(state?.[0], null) };
    return work({ endpoint, event: storedEvent(row, event) }, tx);
  });
}

/** The row as settled, and behind it the state of the key, for when it was not ours to settle. */
function settling(delivery: Delivery, ignored: IgnoredReason | null): Write[] {
  return [transitions.settle(delivery, ignored), transitions.readState(delivery)];
}

async function work(delivery: Delivery, tx: Connection["tx"]): Promise<Ending<Received>> {
  const verdict = judge(delivery.endpoint, delivery.event);
  if ("ignored" in verdict) {
    const { ignored } = verdict;
    return {
      commit: [transitions.settleAsIgnored(delivery, ignored)],
      value: { outcome: "ignored", ignored },
    };
  }
  const writes = await askHandler(verdict.handler, delivery.event, tx);
  return { commit: writes, value: { outcome: "processed" } };
}

/** The handler gets exactly what is stored: for an earlier row, that is the first delivery's. */
function storedEvent(row: Row, event: VerifiedEvent): VerifiedEvent {
  const { stored } = row;
  return typeof stored === "string"
    ? eventFromInbox(stored, row["payload_altered"] === true)
    : event;
}

/** If somebody settled or parked the event in the meantime, that is the answer. */
async function recordFailure(
  db: Connection,
  delivery: Delivery,
  failure: Failure,
  { timeouts, maxAttempts, backoffCapSeconds }: ReceivePolicy,
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
      transitions.readState(delivery),
    ]);
    const row = recorded?.[0];
    if (!row) return { ...answerFor(state?.[0], null), error };
    return { outcome: row["parked"] === true ? "needs_review" : "failed", error };
  } catch (cause) {
    // Whoever holds the row's lock is at work on this very event, and leaves a record of its own.
    if (classify(cause).kind === "contention") return { outcome: "failed", error };
    throw new DatabaseUnavailable("a failure could not be recorded", { cause });
  }
}

function isUnsettled(state: Row | undefined): boolean {
  return state?.["settled"] === false && state["parked"] === false;
}

/** What a delivery is told whose row was not its own to settle. */
function answerFor(state: Row | undefined, ignored: IgnoredReason | null): Received {
  if (state?.["parked"] === true) return { outcome: "needs_review" };
  if (state?.["settled"] === true) {
    return ignored === "test_id" ? { outcome: "ignored", ignored } : { outcome: "duplicate" };
  }
  throw new InboxRowMoved("The inbox row is neither ours nor settled nor parked.");
}

/** Sent, not waited for: the connection's close waits for it, the answer does not. */
function countDuplicate(db: Connection, delivery: Delivery, timeouts: Timeouts): void {
  inOneFlight(db, timeouts, [transitions.countDuplicate(delivery)]).catch(() => undefined);
}

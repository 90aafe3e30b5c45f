/**
 * Messages leave: claimed under a lease, sent with no transaction open, marked. Who dies in between
 * has its messages sent a second time, by another; so they leave at least once, in the order of
 * their aggregate, and whoever reads them must know one that it has had.
 */
import type { Queue } from "../config.ts";
import type { Connection } from "../db/connect.ts";
import { inOneFlight, type Timeouts } from "../db/transaction.ts";
import { errorClass, log } from "../log.ts";
import * as transitions from "./messages.ts";
import type { ClaimedMessage } from "./messages.ts";

/** What leaves: the body of one message of the queue. */
export interface OutboundMessage {
  /** The outbox row's id. */
  readonly message_id: number;
  readonly aggregate_type: string;
  readonly aggregate_id: string;
  readonly event_type: string;
  readonly payload: unknown;
}

/**
 * Hands over all of them or, by rejecting, none. Another destination than the queue is another such
 * function.
 */
export type Send = (messages: readonly OutboundMessage[]) => Promise<void>;

export function sendTo(queue: Queue): Send {
  return async (messages) => {
    await queue.sendBatch(messages.map((body) => ({ body })));
  };
}

export interface DispatchPolicy {
  readonly timeouts: Timeouts;
  readonly leaseSeconds: number;
  readonly maxAttempts: number;
  readonly backoffCapSeconds: number;
}

export interface DispatchCounts {
  published: number;
  /** They could not be sent, and are tried again. */
  unsent: number;
  parked: number;
  /** Sends that the queue did not take. */
  refused: number;
}

/** What one call of the queue takes: https://developers.cloudflare.com/queues/platform/limits/ */
const MESSAGES_IN_ONE_SEND = 100;
const BYTES_IN_ONE_SEND = 256_000;
const BYTES_IN_ONE_MESSAGE = 128_000;
/** The queue adds some hundred bytes to each. */
const BYTES_AROUND_A_MESSAGE = 512;

const utf8 = new TextEncoder();

/**
 * One batch: two round trips, and the send between them.
 *
 * @returns null when nothing was due.
 */
export async function dispatchBatch(
  db: Connection,
  send: Send,
  policy: DispatchPolicy,
): Promise<DispatchCounts | null> {
  const { timeouts, leaseSeconds } = policy;
  const claiming = transitions.claimMessages(MESSAGES_IN_ONE_SEND, leaseSeconds);
  const [claimed = []] = await inOneFlight(db, timeouts, [claiming]);
  if (claimed.length === 0) return null;
  const counts = { published: 0, unsent: 0, parked: 0, refused: 0 };
  const { sendable, tooLarge } = inSizesToSend(claimed.map(transitions.toMessage));
  for (const messages of sendable) await sendAndMark(db, send, messages, policy, counts);
  // It would take the others of its batch with it, every time.
  if (tooLarge.length > 0) {
    const atOnce = { ...policy, maxAttempts: 1 };
    await recordUnsent(db, tooLarge, "MessageTooLarge", atOnce, counts);
  }
  return counts;
}

/** Parks the messages whose last allowed attempt crashed; returns how many. */
export async function parkCrashedMessages(
  db: Connection,
  { maxAttempts, timeouts }: Pick<DispatchPolicy, "maxAttempts" | "timeouts">,
): Promise<number> {
  const [parked = []] = await inOneFlight(db, timeouts, [
    transitions.parkCrashedMessages(maxAttempts),
  ]);
  return parked.length;
}

async function sendAndMark(
  db: Connection,
  send: Send,
  messages: readonly ClaimedMessage[],
  policy: DispatchPolicy,
  counts: DispatchCounts,
): Promise<void> {
  const failure = await send(messages.map(toOutbound)).then(() => null, errorClass);
  if (failure !== null) {
    counts.refused += 1;
    return recordUnsent(db, messages, failure, policy, counts);
  }
  const marking = transitions.markPublished(messages);
  const [marked = []] = await inOneFlight(db, policy.timeouts, [marking]);
  counts.published += marked.length;
}

async function recordUnsent(
  db: Connection,
  messages: readonly ClaimedMessage[],
  code: string,
  { timeouts, maxAttempts, backoffCapSeconds }: DispatchPolicy,
  counts: DispatchCounts,
): Promise<void> {
  log("warn", "dispatch", { error: code, messages: messages.length, first: messages[0]?.id });
  const recording = transitions.recordUnsent(messages, { code, maxAttempts, backoffCapSeconds });
  const [recorded = []] = await inOneFlight(db, timeouts, [recording]);
  const parked = recorded.filter((row) => row["parked"] === true).length;
  counts.parked += parked;
  counts.unsent += recorded.length - parked;
}

function toOutbound(message: ClaimedMessage): OutboundMessage {
  return {
    message_id: message.id,
    aggregate_type: message.aggregateType,
    aggregate_id: message.aggregateId,
    event_type: message.eventType,
    payload: message.payload,
  };
}

function inSizesToSend(messages: readonly ClaimedMessage[]): {
  readonly sendable: readonly ClaimedMessage[][];
  readonly tooLarge: readonly ClaimedMessage[];
} {
  const sendable: ClaimedMessage[][] = [];
  const tooLarge: ClaimedMessage[] = [];
  let room = 0;
  for (const message of messages) {
    const bytes = utf8.encode(JSON.stringify(toOutbound(message))).length + BYTES_AROUND_A_MESSAGE;
    const last = sendable.at(-1);
    if (bytes > BYTES_IN_ONE_MESSAGE) tooLarge.push(message);
    else if (last && bytes <= room) {
      last.push(message);
      room -= bytes;
    } else {
      sendable.push([message]);
      room = BYTES_IN_ONE_SEND - bytes;
    }
  }
  return { sendable, tooLarge };
}

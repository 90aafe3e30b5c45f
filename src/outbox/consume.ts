/**
 * A message arrives, once or more often: what follows from it happens once in effect. The journal
 * is asked first and told afterwards; in between, with no transaction open, comes the call, under a
 * key that is the same for every attempt.
 */
import type { Stripe } from "stripe";
import * as v from "valibot";
import type { Connection } from "../db/connect.ts";
import { inOneFlight, type Timeouts } from "../db/transaction.ts";
import { errorClass } from "../log.ts";
import { CallFailed } from "../stripe/call-failed.ts";
import type { OutboundMessage } from "./dispatch.ts";
import * as journal from "./journal.ts";
import type { ClaimedCall } from "./journal.ts";

/** What follows from a message: one call, made from the message alone. */
export interface Consequence {
  readonly key: string;
  /** @returns what came of it, in a word. @throws CallFailed, or anything: then nobody knows. */
  readonly call: () => Promise<string>;
}

/**
 * What follows, by the kind of a message: its `event_type`.
 *
 * @param stripe called when a call is to be made: without an API key, it throws, and the call waits.
 * @returns null when nothing follows from this one.
 * @throws for a payload that it cannot read.
 */
export type ConsequenceTable = Readonly<
  Record<string, (message: OutboundMessage, stripe: () => Stripe) => Consequence | null>
>;

/** Null: nothing follows from such a message. @throws for one that it does not know. */
export type FindConsequence = (message: OutboundMessage) => Consequence | null;

/**
 * A kind that is not known is thrown, and not taken for one from which nothing follows: a newer
 * version may have sent it.
 */
export function consequencesAt(table: ConsequenceTable, stripe: () => Stripe): FindConsequence {
  return (message) => {
    const follow = Object.hasOwn(table, message.event_type) ? table[message.event_type] : undefined;
    if (!follow) throw new TypeError(`Unknown kind: ${message.event_type}`);
    return follow(message, stripe);
  };
}

export type Consumed =
  | { readonly outcome: "done" | "repeated" | "nothing_follows" }
  /** It does not even name a message of ours. */
  | { readonly outcome: "foreign" }
  | { readonly outcome: "needs_review"; readonly error: string }
  /** To be delivered again. */
  | { readonly outcome: "failed"; readonly error: string; readonly delaySeconds: number }
  | { readonly outcome: "busy"; readonly delaySeconds: number };

/**
 * A hundred deliveries then end before the four days for which a queue keeps a message: what it gives
 * up goes to review, what it has kept for too long vanishes.
 */
const LONGEST_DELAY_SECONDS = 3_300;

export interface ConsumePolicy {
  readonly timeouts: Timeouts;
  /** Longer than a call may take. */
  readonly leaseSeconds: number;
  readonly backoffCapSeconds: number;
}

const Message = v.object({
  message_id: v.pipe(v.number(), v.safeInteger()),
  aggregate_type: v.string(),
  aggregate_id: v.string(),
  event_type: v.string(),
  payload: v.record(v.string(), v.unknown()),
});

/**
 * @param deliveries how often the queue has delivered it, this time included.
 * @throws DatabaseUnavailable and others: the message is then to be delivered again.
 */
export async function consume(
  db: Connection,
  body: unknown,
  deliveries: number,
  find: FindConsequence,
  policy: ConsumePolicy,
): Promise<Consumed> {
  const { timeouts, leaseSeconds } = policy;
  return withConsequence(db, body, find, timeouts, async (messageId, consequence) => {
    const { key } = consequence;
    const [, claimed, states] = await inOneFlight(db, timeouts, [
      journal.parkUncertain(key),
      journal.claimCall(key, messageId, leaseSeconds),
      journal.readCall(key),
    ]);
    const row = claimed?.[0];
    if (!row) return withoutClaim(db, { key, messageId }, states?.[0], timeouts);
    const call = { key, messageId, fence: Number(row["fence"]), first: row["first"] === true };
    return makeCall(db, call, consequence, deliveries, policy);
  }).catch((error: unknown) => {
    if (!(error instanceof CallFailed)) throw error;
    // It asked for an API that there is not before there was a call to make.
    const delaySeconds = Math.min(LONGEST_DELAY_SECONDS, 2 ** deliveries);
    return { outcome: "failed", error: error.code, delaySeconds };
  });
}

/** The queue has given up: its message must not vanish, so that the call goes to review. */
export async function parkUndelivered(
  db: Connection,
  body: unknown,
  find: FindConsequence,
  timeouts: Timeouts,
): Promise<Consumed> {
  return withConsequence(db, body, find, timeouts, async (messageId, { key }) => {
    const [parked, states] = await inOneFlight(db, timeouts, [
      journal.parkUndelivered(key, messageId),
      journal.readCall(key),
    ]);
    if (parked?.[0]) return { outcome: "needs_review", error: "Undelivered" };
    return withoutClaim(db, { key, messageId }, states?.[0], timeouts);
  }).catch((error: unknown) => {
    if (!(error instanceof CallFailed)) throw error;
    return parkUnreadable(db, body, timeouts);
  });
}

/**
 * Where nothing follows, or what follows is not known, that is the end of it.
 *
 * @throws CallFailed when there is no API, and what follows cannot be told without.
 */
async function withConsequence(
  db: Connection,
  body: unknown,
  find: FindConsequence,
  timeouts: Timeouts,
  work: (messageId: number, consequence: Consequence) => Promise<Consumed>,
): Promise<Consumed> {
  const message = v.safeParse(Message, body);
  const consequence = message.success ? findConsequence(message.output, find) : "unreadable";
  if (!message.success || consequence === "unreadable") return parkUnreadable(db, body, timeouts);
  const messageId = message.output.message_id;
  if (consequence !== null) return work(messageId, consequence);
  await inOneFlight(db, timeouts, journal.markMessageDone(messageId, null));
  return { outcome: "nothing_follows" };
}

function findConsequence(
  message: OutboundMessage,
  find: FindConsequence,
): Consequence | "unreadable" | null {
  try {
    return find(message);
  } catch (error) {
    // There is no API, and nothing wrong with the message.
    if (error instanceof CallFailed) throw error;
    return "unreadable";
  }
}

/**
 * What follows from it is not known to this version of the Worker, so that nothing is known to have
 * happened: a person must look, and have it sent again once the code is put right.
 */
async function parkUnreadable(
  db: Connection,
  body: unknown,
  timeouts: Timeouts,
): Promise<Consumed> {
  const named = v.safeParse(v.object({ message_id: Message.entries.message_id }), body);
  if (!named.success) return { outcome: "foreign" };
  await inOneFlight(db, timeouts, [journal.parkUnreadable(named.output.message_id)]);
  return { outcome: "needs_review", error: "Unreadable" };
}

async function withoutClaim(
  db: Connection,
  { key, messageId }: Pick<ClaimedCall, "key" | "messageId">,
  state: Readonly<Record<string, unknown>> | undefined,
  timeouts: Timeouts,
): Promise<Consumed> {
  switch (state?.["state"]) {
    case "done":
      // Whoever made the call may have died before saying so, or the message was sent twice.
      await inOneFlight(db, timeouts, journal.markMessageDone(messageId, key));
      return { outcome: "repeated" };
    case "parked":
      return { outcome: "needs_review", error: "parked" };
    default:
      return {
        outcome: "busy",
        delaySeconds: Math.min(LONGEST_DELAY_SECONDS, Number(state?.["seconds"] ?? 1)),
      };
  }
}

async function makeCall(
  db: Connection,
  call: ClaimedCall,
  consequence: Consequence,
  deliveries: number,
  { timeouts, backoffCapSeconds }: ConsumePolicy,
): Promise<Consumed> {
  let result: string;
  try {
    result = await consequence.call();
  } catch (error) {
    const { code, kind, retryAfterSeconds } = asFailure(error);
    if (kind === "refused") {
      await inOneFlight(db, timeouts, [journal.parkCall(call, code)]);
      return { outcome: "needs_review", error: code };
    }
    // Where nothing can have happened, Stripe knows no key that it could forget meanwhile.
    const isInNoHurry = kind === "no access" && call.first;
    const cap = isInNoHurry ? LONGEST_DELAY_SECONDS : backoffCapSeconds;
    const wanted = Math.max(Math.min(cap, 2 ** deliveries), retryAfterSeconds ?? 0);
    const delaySeconds = Math.min(wanted, LONGEST_DELAY_SECONDS);
    const failure = { code, retryAfterSeconds: delaySeconds, certain: kind !== "uncertain" };
    await inOneFlight(db, timeouts, [journal.recordCallFailure(call, failure)]);
    return { outcome: "failed", error: code, delaySeconds };
  }
  await inOneFlight(db, timeouts, [
    journal.recordDone(call, result),
    ...journal.markMessageDone(call.messageId, call.key),
  ]);
  return { outcome: "done" };
}

function asFailure(error: unknown): CallFailed {
  return error instanceof CallFailed ? error : new CallFailed("uncertain", errorClass(error));
}

/**
 * The queue's door: each message to its consequence, and to its end: acknowledged, or delivered
 * again later. What the queue has given up is parked in the journal.
 */
import { consequencesAt } from "./billing/consequences.ts";
import { type Env, readSettings, readStripeApi, type Settings } from "./config.ts";
import type { Connection } from "./db/connect.ts";
import { withConnection } from "./db/with-connection.ts";
import { explain } from "./faults.ts";
import { type Fields, log } from "./log.ts";
import { type Consumed, consume, type FindConsequence, parkUndelivered } from "./outbox/consume.ts";
import { createStripe } from "./stripe/api.ts";

/** The part of a queue's batch that is used here. */
export interface Batch {
  readonly queue: string;
  readonly messages: readonly QueuedMessage[];
  readonly retryAll: (options: { readonly delaySeconds: number }) => void;
}

export interface QueuedMessage {
  readonly body: unknown;
  /** Deliveries of it, this one included. */
  readonly attempts: number;
  readonly ack: () => void;
  readonly retry: (options: { readonly delaySeconds: number }) => void;
}

/** The end of the name of a queue that takes what another one gave up: see wrangler.toml. */
const UNDELIVERED = "-undelivered";
/** For each message: longer than its call may take. */
const MESSAGE_MS = 30_000;
const LEASE_SECONDS = 60;
/** After a fault of ours, such as no database. */
const FAULT_DELAY_SECONDS = 30;

export async function consumeBatch(
  batch: Batch,
  env: Env,
  afterwards: (rest: Promise<unknown>) => void,
): Promise<void> {
  try {
    const settings = readSettings(env);
    const find = consequencesAt(createStripe(readStripeApi(env)));
    const deadlineMs = batch.messages.length * MESSAGE_MS;
    await withConnection(settings.database, { deadlineMs, afterwards }, async ({ db }) => {
      for (const message of batch.messages) {
        await consumeOne(db, batch.queue, message, find, settings);
      }
    });
  } catch (fault) {
    // Those that were acknowledged stay so.
    batch.retryAll({ delaySeconds: FAULT_DELAY_SECONDS });
    log("error", "queue", { queue: batch.queue, ...explain(fault) });
  }
}

async function consumeOne(
  db: Connection,
  queue: string,
  message: QueuedMessage,
  find: FindConsequence,
  { receive: timeouts, retry: { backoffCapSeconds } }: Settings,
): Promise<void> {
  const startedAt = Date.now();
  const policy = { timeouts, backoffCapSeconds, leaseSeconds: LEASE_SECONDS };
  const consumed = queue.endsWith(UNDELIVERED)
    ? await parkUndelivered(db, message.body, find, timeouts)
    : await consume(db, message.body, message.attempts, find, policy);
  if ("delaySeconds" in consumed) message.retry({ delaySeconds: consumed.delaySeconds });
  else message.ack();
  log(levelOf(consumed), "message", {
    ...messageId(message.body),
    ...consumed,
    attempts: message.attempts,
    ms: Date.now() - startedAt,
  });
}

function levelOf({ outcome }: Consumed): "info" | "warn" | "error" {
  switch (outcome) {
    case "done":
    case "repeated":
    case "nothing_follows":
    case "busy":
      return "info";
    case "failed":
    case "needs_review":
      return "warn";
    case "unreadable":
      return "error";
  }
}

function messageId(body: unknown): Fields {
  const id = typeof body === "object" && body !== null && "message_id" in body && body.message_id;
  return typeof id === "number" ? { id } : {};
}

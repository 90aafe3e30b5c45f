/**
 * The queue's door: each message to its consequence, and to its end: acknowledged, or delivered
 * again later. What the queue has given up is parked in the journal.
 */
import type { Stripe } from "stripe";
import { type Env, InvalidSetting, readSettings, readStripeApi, type Settings } from "./config.ts";
import type { Connection } from "./db/connect.ts";
import { withConnection } from "./db/with-connection.ts";
import { explain } from "./faults.ts";
import { type Fields, log } from "./log.ts";
import {
  type Consumed,
  consequencesAt,
  type ConsequenceTable,
  consume,
  type FindConsequence,
  parkUndelivered,
} from "./outbox/consume.ts";
import { apiOf, createStripe } from "./stripe/api.ts";

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

/** For each message: longer than its call may take. */
const MESSAGE_MS = 30_000;
const LEASE_SECONDS = 60;
/**
 * After a fault of ours, such as no database: it doubles with each delivery, so that a hundred of
 * them take 94 hours of the four days for which a queue keeps a message.
 */
const FIRST_FAULT_DELAY_SECONDS = 30;
const LONGEST_FAULT_DELAY_SECONDS = 3_600;
/** While processing is paused. */
const PAUSED_DELAY_SECONDS = 900;

export async function consumeBatch(
  consequences: ConsequenceTable,
  batch: Batch,
  env: Env,
  afterwards: (rest: Promise<unknown>) => void,
): Promise<void> {
  try {
    const settings = readSettings(env);
    const role = roleOf(batch.queue);
    if (role === "outbox" && !settings.processing) {
      return batch.retryAll({ delaySeconds: PAUSED_DELAY_SECONDS });
    }
    let stripe: Stripe | undefined;
    const find = consequencesAt(
      consequences,
      () => (stripe ??= createStripe(apiOf(() => readStripeApi(env)))),
    );
    const deadlineMs = batch.messages.length * MESSAGE_MS;
    await withConnection(settings.database, { deadlineMs, afterwards }, async ({ db }) => {
      for (const message of batch.messages) {
        await consumeOne(db, role, message, find, settings);
      }
    });
  } catch (fault) {
    // Those that were acknowledged stay so.
    const attempts = Math.max(1, ...batch.messages.map((message) => message.attempts));
    const delaySeconds = FIRST_FAULT_DELAY_SECONDS * 2 ** Math.min(attempts - 1, 10);
    batch.retryAll({ delaySeconds: Math.min(delaySeconds, LONGEST_FAULT_DELAY_SECONDS) });
    log("error", "queue", { queue: batch.queue, ...explain(fault) });
  }
}

type Role = "outbox" | "undelivered";

/** @throws for a queue that wrangler.toml names neither way: what to do with its messages? */
function roleOf(queue: string): Role {
  if (queue.includes("undelivered")) return "undelivered";
  if (queue.includes("outbox")) return "outbox";
  throw new InvalidSetting(
    "queues.consumers",
    'must have "outbox" or "undelivered" in their names',
  );
}

async function consumeOne(
  db: Connection,
  role: Role,
  message: QueuedMessage,
  find: FindConsequence,
  { receive: timeouts, retry: { backoffCapSeconds } }: Settings,
): Promise<void> {
  const startedAt = Date.now();
  const policy = { timeouts, backoffCapSeconds, leaseSeconds: LEASE_SECONDS };
  const consumed =
    role === "undelivered"
      ? await parkUndelivered(db, message.body, find, timeouts)
      : await consume(db, message.body, message.attempts, find, policy);
  if ("delaySeconds" in consumed) {
    message.retry({ delaySeconds: consumed.delaySeconds });
  } else message.ack();
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
    case "foreign":
      return "error";
  }
}

function messageId(body: unknown): Fields {
  const id = typeof body === "object" && body !== null && "message_id" in body && body.message_id;
  return typeof id === "number" ? { id } : {};
}

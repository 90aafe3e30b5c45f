/** A receiver with a queue of its own, and the consumer at its end, for tests of what leaves. */
import { onTestFinished } from "vitest";
import { consequences as shipped, type Endpoints } from "../../src/endpoints.ts";
import type { ConsequenceTable } from "../../src/outbox/consume.ts";
import { type Batch, consumeBatch, type QueuedMessage } from "../../src/queue.ts";
import { type ApiOptions, type FakeStripeApi, startStripeApi } from "../local/stripe-api.ts";
import { anInvoiceEvent, openTestbed, type Testbed } from "../worker/testbed.ts";

export interface Sent {
  readonly body: unknown;
}

/** A queue that keeps what it is sent, or refuses it. */
export class FakeQueue {
  readonly sends: (readonly Sent[])[] = [];
  /** What a send does before it is taken; rejects to refuse it. */
  before: () => Promise<void> = () => Promise.resolve();

  get messages(): readonly Sent[] {
    return this.sends.flat();
  }

  readonly sendBatch = async (messages: Iterable<Sent>): Promise<void> => {
    await this.before();
    this.sends.push([...messages]);
  };
}

export interface Outbound {
  readonly inbox: Testbed;
  readonly queue: FakeQueue;
  readonly api: FakeStripeApi;
  /** The consumer gets these, each for the given time; returns what became of each. */
  readonly consume: (
    messages: readonly Sent[],
    options?: {
      readonly attempts?: number;
      readonly undelivered?: boolean;
      readonly queue?: string;
      readonly env?: object;
    },
  ) => Promise<readonly ("ack" | { readonly delaySeconds: number })[]>;
}

/** Opened within a test, and closed when that is over. */
export async function openOutbound(
  options: {
    readonly env?: Readonly<Record<string, unknown>>;
    readonly api?: ApiOptions;
    readonly endpoints?: Endpoints;
    readonly consequences?: ConsequenceTable;
    readonly databaseUrl?: string;
  } = {},
): Promise<Outbound> {
  const { env, api: apiOptions, consequences = shipped, ...receiver } = options;
  const queue = new FakeQueue();
  const api = await startStripeApi(apiOptions);
  onTestFinished(api.close);
  const inbox = await openTestbed({ ...receiver, env: { OUTBOX_QUEUE: queue, ...env } });
  return {
    inbox,
    queue,
    api,
    consume: async (
      messages,
      { attempts = 1, undelivered = false, queue: name, env: over } = {},
    ) => {
      const ends = messages.map(() => Promise.withResolvers<"ack" | { delaySeconds: number }>());
      const batch: Batch = {
        queue: name ?? (undelivered ? "stripe-inbox-undelivered" : "stripe-inbox-outbox"),
        messages: messages.map(({ body }, index): QueuedMessage => ({
          body,
          attempts,
          ack: () => ends[index]?.resolve("ack"),
          retry: (retry) => ends[index]?.resolve(retry),
        })),
        retryAll: (retry) => {
          for (const { resolve } of ends) resolve(retry);
        },
      };
      const rest: Promise<unknown>[] = [];
      await consumeBatch(
        consequences,
        batch,
        {
          HYPERDRIVE: { connectionString: inbox.databaseUrl },
          STRIPE_API_KEY: "sk_test_made_up",
          STRIPE_API_URL: api.url,
          ...over,
        },
        (promise) => rest.push(promise),
      );
      await Promise.all(rest);
      return Promise.all(ends.map(({ promise }) => promise));
    },
  };
}

/** One payment booked, and its message sent. @returns the key of the call that follows. */
export async function oneSent({ inbox, queue }: Outbound): Promise<string> {
  const event = anInvoiceEvent();
  await inbox.deliver(event);
  if (queue.messages.length !== 1) throw new Error("It was not sent.");
  return `webhook:${event.id}:update-customer-metadata`;
}

export async function outboxRows(inbox: Pick<Testbed, "rows">) {
  return inbox.rows(`select attempts, published_at is not null as published,
    done_at is not null as done, parked_at is not null as parked, last_error
    from outbox order by id`);
}

export async function journalRows(inbox: Pick<Testbed, "rows">) {
  return inbox.rows(
    `select key, state, attempts, result, last_error from call_journal order by key`,
  );
}

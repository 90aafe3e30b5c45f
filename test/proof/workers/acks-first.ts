/**
 * Broken: it acknowledges a message before what follows from it has happened. Whatever goes wrong
 * from then on (no database, a cut, a refused statement) would have the message delivered again, but
 * the queue has let go of it: nobody calls Stripe, or nobody hears that the call was made.
 */
import type { Env } from "../../../src/config.ts";
import { consequences } from "../../../src/endpoints.ts";
import { type Batch, consumeBatch } from "../../../src/queue.ts";
import type { Context } from "./receiver.ts";

const nothing = (): void => undefined;

export default {
  queue: (batch: Batch, env: Env, ctx: Context): Promise<void> => {
    const messages = batch.messages.map((message) => {
      message.ack();
      return { body: message.body, attempts: message.attempts, ack: nothing, retry: nothing };
    });
    const acknowledged = { queue: batch.queue, messages, retryAll: nothing };
    return consumeBatch(consequences, acknowledged, env, (rest) => ctx.waitUntil(rest));
  },
};

/**
 * Broken: its sends resolve before anything is sent, so that a message is marked as published first,
 * and leaves when the tick is over. What ends the Worker in between leaves the mark without the
 * message, and nobody sends it again.
 */
import type { Env, Queue } from "../../../src/config.ts";
import { tick } from "../../../src/cron.ts";
import { type Context, endpoints } from "./receiver.ts";
import { queueAt } from "./to-queue.ts";

export default {
  scheduled: async (_: unknown, env: Env, ctx: Context): Promise<void> => {
    const late: { readonly body: unknown }[] = [];
    const queue: Queue = {
      sendBatch: (messages) => Promise.resolve(late.push(...messages)),
    };
    await tick(endpoints, { ...env, OUTBOX_QUEUE: queue }, (rest) => ctx.waitUntil(rest));
    await queueAt(String(env["QUEUE_URL"])).sendBatch(late);
  },
};

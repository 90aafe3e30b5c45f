/**
 * The queue's producer as the proof binds it: each send hands its messages to the proof itself, and
 * waits until they are there. In the place of Cloudflare Queues, of which it imitates neither the
 * limits of size and rate, nor batching, nor a delay; and it refuses nothing.
 */
import type { Env, Queue } from "../../../src/config.ts";

/** The variable that says where; a Worker without it has no queue. */
export function withQueue(env: Env): Env {
  const url = env["QUEUE_URL"];
  return typeof url === "string" ? { ...env, OUTBOX_QUEUE: queueAt(url) } : env;
}

export function queueAt(url: string): Queue {
  return {
    sendBatch: async (messages) => {
      const bodies = Array.from(messages, ({ body }) => body);
      const { status } = await fetch(url, { method: "POST", body: JSON.stringify(bodies) });
      if (status !== 204) throw new Error(`The proof's queue answered with ${status}.`);
    },
  };
}

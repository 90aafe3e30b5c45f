/**
 * The queue as the proof keeps it: what reached it is known, and waits until a delivery of it is
 * acknowledged. Workers hand their messages over by HTTP: see `workers/to-queue.ts`.
 */
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import * as v from "valibot";
import { LOOPBACK } from "../../local/ports.ts";
import type { Row } from "./books.ts";

export interface ProofQueue {
  /** Where messages are posted, several at a time; answered once they are here. */
  readonly url: string;
  /** One row for each message that ever got here, however often it did. */
  readonly reached: () => readonly Row[];
  /**
   * Hands over the message that waits longest, which is gone when that was acknowledged; null when
   * none waits.
   */
  readonly deliver: (to: (body: unknown) => Promise<boolean>) => Promise<boolean | null>;
  readonly clear: () => void;
  /** Keeps what it holds now; `restore` brings it back. */
  readonly keep: () => void;
  readonly restore: () => void;
  readonly close: () => Promise<void>;
}

/** As the product sends it; whatever else is in it is not the queue's business. */
const Message = v.looseObject({
  aggregate_type: v.string(),
  aggregate_id: v.string(),
  event_type: v.string(),
  payload: v.looseObject({ event_id: v.string() }),
});
type Message = v.InferOutput<typeof Message>;

interface Held {
  readonly reached: readonly Message[];
  readonly waiting: readonly Message[];
}

const NOTHING: Held = { reached: [], waiting: [] };

export async function startQueue(): Promise<ProofQueue> {
  let held = NOTHING;
  let kept = NOTHING;
  const take = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const messages = await readMessages(request);
    held = { reached: [...held.reached, ...messages], waiting: [...held.waiting, ...messages] };
    response.writeHead(204).end();
  };
  const server = createServer((request, response) => {
    // A Worker that was killed while it was posting.
    take(request, response).catch(() => response.writeHead(400).end());
  });
  server.listen(0, LOOPBACK);
  await once(server, "listening");
  const address = server.address();
  if (typeof address !== "object" || address === null) throw new Error("Bug! This is TCP.");
  return {
    url: `http://${LOOPBACK}:${address.port}`,
    reached: () => {
      const distinct = new Map(
        held.reached.map((message) => [JSON.stringify(rowOf(message)), rowOf(message)]),
      );
      return [...distinct.values()];
    },
    deliver: async (to) => {
      const [first] = held.waiting;
      if (first === undefined) return null;
      const acknowledged = await to(first);
      if (acknowledged) held = { ...held, waiting: held.waiting.filter((one) => one !== first) };
      return acknowledged;
    },
    clear: () => {
      held = NOTHING;
    },
    keep: () => {
      kept = held;
    },
    restore: () => {
      held = kept;
    },
    close: async () => {
      const closed = once(server, "close");
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

/** Not by the id of its row, which the database gives anew each time. */
function rowOf({ aggregate_type, aggregate_id, event_type, payload: { event_id } }: Message): Row {
  return { aggregate_type, aggregate_id, event_type, event_id };
}

async function readMessages(request: IncomingMessage): Promise<readonly Message[]> {
  let text = "";
  for await (const chunk of request) text += String(chunk);
  return v.parse(v.array(Message), JSON.parse(text));
}

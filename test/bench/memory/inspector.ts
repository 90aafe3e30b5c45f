/**
 * V8's inspector over its WebSocket, as far as memory goes. It answers between two turns of the
 * isolate, so what a turn needs and frees is not seen.
 * https://chromedevtools.github.io/devtools-protocol/v8/
 */
import { once } from "node:events";
import * as v from "valibot";

/** In bytes. */
export interface Heap {
  /** JavaScript's objects, garbage that was not collected yet among them. */
  readonly used: number;
  /** What they hold outside the heap: the bytes of buffers. */
  readonly backing: number;
}

export interface Inspector {
  readonly heap: () => Promise<Heap>;
  /** Not before the isolate has something to do: give it some. */
  readonly collectGarbage: () => Promise<void>;
}

const Answer = v.object({
  id: v.number(),
  result: v.optional(v.unknown()),
  error: v.optional(v.unknown()),
});
const Usage = v.object({
  usedSize: v.number(),
  embedderHeapUsedSize: v.optional(v.number(), 0),
  backingStorageSize: v.optional(v.number(), 0),
});

export async function inspect(url: URL): Promise<Inspector> {
  const socket = new WebSocket(url);
  await once(socket, "open");
  const waiting = new Map<number, PromiseWithResolvers<unknown>>();
  socket.addEventListener("message", ({ data }) => {
    // Events come on the same socket, without an id.
    const answer = v.safeParse(Answer, JSON.parse(String(data)));
    if (!answer.success) return;
    const { id, result, error } = answer.output;
    if (error === undefined) waiting.get(id)?.resolve(result);
    else waiting.get(id)?.reject(new Error(`The inspector refused: ${JSON.stringify(error)}`));
    waiting.delete(id);
  });
  socket.addEventListener("close", () => {
    for (const { reject } of waiting.values()) reject(new Error("The inspector is gone."));
  });
  let last = 0;
  const send = (method: string): Promise<unknown> => {
    const answer = Promise.withResolvers<unknown>();
    waiting.set(++last, answer);
    socket.send(JSON.stringify({ id: last, method }));
    return answer.promise;
  };
  return {
    heap: async () => {
      const usage = v.parse(Usage, await send("Runtime.getHeapUsage"));
      return {
        used: usage.usedSize + usage.embedderHeapUsedSize,
        backing: usage.backingStorageSize,
      };
    },
    collectGarbage: async () => {
      await send("HeapProfiler.enable");
      await send("HeapProfiler.collectGarbage");
    },
  };
}

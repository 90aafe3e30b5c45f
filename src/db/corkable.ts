/** Several writes as one packet, in Node and in Workers. */

/** What the driver writes to, in Node and in Workers. */
export interface Stream {
  write(data: Uint8Array | string, encoding?: unknown, callback?: () => void): unknown;
  destroy(): void;
}

export interface CorkableStream extends Stream {
  cork(): void;
  uncork(): void;
}

/** What is as long goes by itself: it would be in memory twice. */
const LARGE_BYTES = 64 * 1024;

/**
 * Sends what is written between cork() and uncork() as one. The driver writes up to five messages
 * for a statement, and its socket for Workers, unlike Node's, sends each by itself: a delivery was
 * some twenty packets, each of which woke the pooler and Postgres.
 */
export function corkable(stream: Stream): CorkableStream {
  if (isCorkable(stream)) return stream;
  const send = stream.write.bind(stream);
  let depth = 0;
  let waiting: Uint8Array[] = [];
  const flush = (): void => {
    if (waiting.length > 0) send(Buffer.concat(waiting));
    waiting = [];
  };
  return Object.assign(stream, {
    cork: () => {
      depth += 1;
    },
    uncork: () => {
      depth -= 1;
      if (depth === 0) flush();
    },
    write: (data: Uint8Array | string, ...rest: [unknown?, (() => void)?]): unknown => {
      const isMessage = typeof data !== "string" && rest.length === 0;
      if (depth > 0 && isMessage && data.length < LARGE_BYTES) return waiting.push(data);
      flush();
      return send(data, ...rest);
    },
  });
}

/** Node's own is. */
function isCorkable(stream: Stream): stream is CorkableStream {
  return "cork" in stream && "uncork" in stream;
}

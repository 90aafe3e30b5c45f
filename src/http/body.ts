/**
 * A request's exact bytes, measured while reading: a missing or false Content-Length changes
 * nothing. Whatever the sender does, the reading ends in time.
 */

export interface BodyLimits {
  readonly bytes: number;
  /** For all of the body, from when its reading begins. */
  readonly ms: number;
}

export const BODY_LIMITS: BodyLimits = {
  /** Stripe's largest events stay well below; an isolate has 128 MB for everything. */
  bytes: 4 * 1024 * 1024,
  /** Stripe sends a body at once; what is left of 9 s covers a wait for a lock, and its record. */
  ms: 5_000,
};

const LEAST_GROWTH_BYTES = 64 * 1024;

/** Why there is no body: all three are the sender's doing. */
export type Unread = "too_large" | "too_slow" | "cut_short";

/** @returns why not, when a body is not complete within the limits; its rest is not read. */
export async function readBody(request: Request, limits: BodyLimits): Promise<Uint8Array | Unread> {
  if (Number(request.headers.get("content-length") ?? 0) > limits.bytes) {
    request.body?.cancel().catch(() => undefined);
    return "too_large";
  }
  if (!request.body) return new Uint8Array();

  const reader: ReadableStreamDefaultReader<Uint8Array> = request.body.getReader();
  const late = Promise.withResolvers<"too_slow">();
  const timer = setTimeout(() => late.resolve("too_slow"), limits.ms);
  try {
    return await Promise.race([readAll(reader, limits.bytes), late.promise]);
  } finally {
    clearTimeout(timer);
    reader.cancel().catch(() => undefined);
  }
}

/**
 * Into one buffer that grows: many small chunks, each kept, take a thousand times their bytes. Most
 * bodies are one chunk.
 */
async function readAll(
  reader: ReadableStreamDefaultReader<Uint8Array>,
  limit: number,
): Promise<Uint8Array | "too_large" | "cut_short"> {
  let buffer: Uint8Array = new Uint8Array();
  let size = 0;
  for (;;) {
    const next = await reader.read().catch(() => null);
    if (next === null) return "cut_short";
    if (next.done) return buffer.subarray(0, size);
    const end = size + next.value.byteLength;
    if (end > limit) return "too_large";
    if (size === 0) buffer = next.value.slice();
    else {
      if (end > buffer.length) buffer = larger(buffer, end);
      buffer.set(next.value, size);
    }
    size = end;
  }
}

function larger(buffer: Uint8Array, atLeast: number): Uint8Array {
  const copy = new Uint8Array(Math.max(atLeast, 2 * buffer.length, LEAST_GROWTH_BYTES));
  copy.set(buffer);
  return copy;
}

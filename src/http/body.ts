/** A request's exact bytes, measured while reading: a missing or false Content-Length changes nothing. */

/** Stripe's largest events stay well below; an isolate has 128 MB for everything. */
export const LARGEST_BODY_BYTES = 4 * 1024 * 1024;

/** @returns null when the body is larger than the limit; what is left of it is not read. */
export async function readBody(request: Request, limit: number): Promise<Uint8Array | null> {
  if (Number(request.headers.get("content-length") ?? 0) > limit) return null;
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of request.body ?? []) {
    size += chunk.byteLength;
    if (size > limit) return null;
    chunks.push(chunk);
  }
  const body = new Uint8Array(size);
  let offset = 0;
  for (const chunk of chunks) {
    body.set(chunk, offset);
    offset += chunk.byteLength;
  }
  return body;
}

/**
 * The `stripe-signature` header, computed as Stripe documents it and not with Stripe's library,
 * so that the two check each other. Pure Web Crypto; runs in Node and in workerd.
 */
const utf8 = new TextEncoder();

export interface Signing {
  /** Whole seconds since 1970; now by default. Text is taken as it is, to sign a broken one. */
  readonly timestamp?: number | string;
  readonly scheme?: "v1" | "v0";
}

/** `t=<timestamp>,v1=<signature>` over exactly these bytes. */
export async function signatureHeader(
  body: string | Uint8Array,
  secret: string,
  { timestamp = Math.floor(Date.now() / 1000), scheme = "v1" }: Signing = {},
): Promise<string> {
  return `t=${timestamp},${scheme}=${await signature(body, secret, timestamp)}`;
}

export interface SignedRequest {
  readonly method: "POST";
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Uint8Array<ArrayBuffer>;
}

/**
 * A delivery, for `fetch(url, …)` or Hono's `app.request(path, …)`.
 *
 * @param body bytes and text as they are, an object as its JSON.
 */
export async function signedRequest(
  body: object | string | Uint8Array<ArrayBuffer>,
  secret: string,
  signing: Signing = {},
): Promise<SignedRequest> {
  const asItIs = typeof body === "string" || body instanceof Uint8Array;
  const sent = asItIs ? body : JSON.stringify(body);
  const headers = {
    "content-type": "application/json; charset=utf-8",
    "stripe-signature": await signatureHeader(sent, secret, signing),
  };
  return { method: "POST", headers, body: sent };
}

/** The signature alone, in hexadecimal, for headers with several of them. */
export async function signature(
  body: string | Uint8Array,
  secret: string,
  timestamp: number | string,
): Promise<string> {
  const prefix = utf8.encode(`${timestamp}.`);
  const bytes = typeof body === "string" ? utf8.encode(body) : body;
  const signed = new Uint8Array(prefix.length + bytes.length);
  signed.set(prefix);
  signed.set(bytes, prefix.length);
  // HMAC pads a short key with zeros, so one zero byte is the empty key, which importKey refuses.
  const keyBytes = secret === "" ? new Uint8Array(1) : utf8.encode(secret);
  const key = await crypto.subtle.importKey(
    "raw",
    keyBytes,
    { name: "HMAC", hash: "SHA-256" },
    false,
    ["sign"],
  );
  const digest = new Uint8Array(await crypto.subtle.sign("HMAC", key, signed));
  return Array.from(digest, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

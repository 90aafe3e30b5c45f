/** One thing to try: what is sent, byte for byte, and what must come of it. */
import { signatureHeader } from "../../local/sign.ts";
import {
  type Expected,
  INVALID,
  judgeSigned,
  LARGEST_BODY_BYTES,
  TOO_LARGE,
  type Where,
} from "./judge.ts";
import type { Step } from "./wire.ts";

export interface Input {
  readonly name: string;
  /** Made when it is sent: bodies are large, and signatures age. */
  readonly prepare: (secretOf: SecretOf) => Promise<Prepared>;
}

export type SecretOf = (where: Where) => string;

export interface Prepared {
  readonly steps: readonly Step[];
  readonly expected: Expected;
}

/** A body, under the name that the report calls it by. */
export interface Body {
  readonly name: string;
  readonly text: () => string | Uint8Array;
}

/** A header line's two halves; each character is one byte. */
export type Header = readonly [name: string, value: string];

export interface Head {
  readonly method?: string;
  readonly path?: string;
  readonly headers?: readonly Header[];
  /** What a Content-Length says; null: there is none. By default, the truth. */
  readonly length?: number | null;
  /** Whether more is to come on the same connection. */
  readonly keepsOpen?: boolean;
}

export const BILLING = "/webhooks/stripe/billing";

/** An input whose steps and expectation are the same at any time. */
export function fixed(name: string, steps: readonly Step[], expected: Expected): Input {
  return { name, prepare: () => Promise.resolve({ steps, expected }) };
}

/** Rightly signed, as by Stripe itself. */
export function signed({ name, text }: Body, where: Where = "billing", head: Head = {}): Input {
  return {
    name: `signed${where === "billing" ? "" : ` for ${where}`}: ${name}`,
    prepare: async (secretOf) => {
      const body = bytesOf(text());
      return {
        steps: await post(body, secretOf(where), { path: `/webhooks/stripe/${where}`, ...head }),
        expected: judgeSigned(body, where),
      };
    },
  };
}

/** The same body from somebody who does not know the secret. */
export function forged({ name, text }: Body): Input {
  return {
    name: `forged: ${name}`,
    prepare: async () => {
      const body = bytesOf(text());
      const expected = body.length > LARGEST_BODY_BYTES ? TOO_LARGE : INVALID;
      return { steps: await post(body, "whsec_forged"), expected };
    },
  };
}

/** Head and body of a delivery that was signed with this secret. */
export async function post(
  body: Uint8Array,
  secret: string,
  { headers = [], ...head }: Head = {},
): Promise<[head: Uint8Array, body: Uint8Array]> {
  const signature: Header = ["Stripe-Signature", await signatureHeader(body, secret)];
  return [headOf({ length: body.length, ...head, headers: [signature, ...headers] }), body];
}

export function headOf({
  method = "POST",
  path = BILLING,
  headers = [],
  length = 0,
  keepsOpen = false,
}: Head): Uint8Array {
  const lines = [
    `${method} ${path} HTTP/1.1`,
    "Host: inbox.test",
    ...headers.map(([name, value]) => `${name}: ${value}`),
    ...(length === null ? [] : [`Content-Length: ${length}`]),
    ...(keepsOpen ? [] : ["Connection: close"]),
  ];
  return raw(`${lines.join("\r\n")}\r\n\r\n`);
}

export const CHUNKED: Header = ["Transfer-Encoding", "chunked"];
export const LAST_CHUNK = raw("0\r\n\r\n");

export function bytesOf(text: string | Uint8Array): Uint8Array {
  return typeof text === "string" ? Buffer.from(text, "utf8") : text;
}

/** One chunk of a chunked body. */
export function chunk(bytes: Uint8Array, extension = ""): Uint8Array {
  return Buffer.concat([raw(`${bytes.length.toString(16)}${extension}\r\n`), bytes, raw("\r\n")]);
}

/** Each character one byte. */
export function raw(text: string): Uint8Array {
  return Buffer.from(text, "latin1");
}

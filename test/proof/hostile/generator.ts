/** What nobody would think of: inputs drawn at random, each with what must come of it. */
import * as fc from "fast-check";
import { INVOICE_EVENT_TYPES } from "../../local/events.ts";
import { json as anyObject, space } from "../../db/nasty-json.ts";
import { anEvent, VALUES } from "./bodies.ts";
import {
  type Body,
  bytesOf,
  chunk,
  CHUNKED,
  type Head,
  type Header,
  headOf,
  type Input,
  LAST_CHUNK,
  post,
  signed,
} from "./input.ts";
import { type Expected, INVALID, judgeSigned, type Where } from "./judge.ts";
import { NASTY_KEYS, NUMBERS } from "./texts.ts";

export interface Generator {
  readonly name: string;
  readonly input: fc.Arbitrary<Input>;
}

const quoted = (texts: readonly unknown[]): fc.Arbitrary<string> =>
  fc.constantFrom(...texts.map((text) => JSON.stringify(text)));

/** JSON texts of values that a field may have, and of many that it may not. */
const value = fc.oneof(
  quoted(VALUES.slice(1)),
  quoted(["paid", "open", "void", "draft", "uncollectible", "eur", "acct_1", "invoice.paid"]),
  fc.constantFrom(...NUMBERS.map((number) => number.slice(0, 500))),
  fc.integer().map(String),
  fc.string({ unit: "binary" }).map((text) => JSON.stringify(text)),
  anyObject,
);

/** A member of an object: mostly under a name that nobody reads, else under one of `names`. */
const member = (names: readonly string[]): fc.Arbitrary<string> =>
  fc
    .tuple(
      fc.oneof(
        { weight: 3, arbitrary: quoted(["created", "api_version", "note", "metadata", "x"]) },
        { weight: 2, arbitrary: quoted(NASTY_KEYS.slice(0, -1)) },
        { weight: 2, arbitrary: quoted(names) },
      ),
      space,
      value,
    )
    .map(([key, blank, text]) => `${key}${blank}:${blank}${text}`);

const members = (...names: string[]): fc.Arbitrary<string> =>
  fc.array(member(names), { maxLength: 4 }).map((all) => all.map((one) => `,${one}`).join(""));

/** An event whose own members may be followed, and so replaced, by hostile ones. */
const eventText = fc
  .record({
    type: fc.oneof(quoted(INVOICE_EVENT_TYPES), quoted(["customer.updated", "constructor"])),
    top: members("id", "object", "type", "livemode", "account"),
    data: members("object", "previous_attributes"),
    invoice: members("id", "status", "amount_paid", "currency", "customer"),
  })
  .map(
    ({ type, top, data, invoice }) =>
      `{"id":"evt_drawn","object":"event","type":${type},"livemode":false,"data":{"object":` +
      `{"id":"in_drawn","status":"paid","amount_paid":4200${invoice}}${data}}${top}}`,
  );

const EVENT = JSON.stringify(anEvent());

const fewBytes = fc.oneof(
  fc.string({ unit: "grapheme-ascii", maxLength: 2 }).map((text) => Buffer.from(text)),
  fc.uint8Array({ maxLength: 2 }),
);

/** An event with a few bytes changed, put in or left out. */
const mutatedEvent = fc
  .array(fc.tuple(fc.nat(EVENT.length), fc.nat(2), fewBytes), { minLength: 1, maxLength: 3 })
  .map((changes) => {
    let bytes = Buffer.from(EVENT);
    for (const [at, without, put] of changes) {
      bytes = Buffer.concat([bytes.subarray(0, at), put, bytes.subarray(at + without)]);
    }
    return bytes;
  });

const anyText: fc.Arbitrary<string | Uint8Array> = fc.oneof(
  { weight: 5, arbitrary: mutatedEvent },
  fc.uint8Array({ maxLength: 200 }),
  fc.string({ unit: "binary", maxLength: 50 }),
  fc.jsonValue({ maxDepth: 4 }).map((any) => JSON.stringify(any)),
  anyObject,
  fc.nat(EVENT.length).map((end) => EVENT.slice(0, end)),
);

/** Named by its bytes, in a form that no terminal minds. */
const asBody = (text: string | Uint8Array): Body => ({
  name: Buffer.from(bytesOf(text))
    .toString("latin1")
    .replaceAll(/[^ -~]/g, (byte) => `\\x${byte.charCodeAt(0).toString(16).padStart(2, "0")}`),
  text: () => text,
});

const where = fc.constantFrom<Where>("billing", "billing", "later", "connect");

/** Bytes that a header may hold, with those that mean something to this one more often. */
const headerValue = fc
  .array(
    fc.oneof(
      fc.constantFrom("t=", "v1=", ",", "=", "0", "1790000000", "v0=", "f".repeat(64), " "),
      fc
        .integer({ min: 0x20, max: 0xff })
        .map((code) => String.fromCharCode(code).replace("\x7f", "")),
    ),
    { maxLength: 40 },
  )
  .map((parts) => parts.join(""));

const forgedHeader: fc.Arbitrary<Input> = fc
  .record({ text: fc.oneof(eventText, anyText), headers: fc.array(headerValue, { maxLength: 3 }) })
  .map(({ text, headers }) => ({
    name: `Stripe-Signature ${JSON.stringify(headers)} over ${asBody(text).name}`,
    prepare: () => {
      const body = bytesOf(text);
      const lines = headers.map((header): Header => ["Stripe-Signature", header]);
      const steps = [headOf({ headers: lines, length: body.length }), body];
      return Promise.resolve({ steps, expected: INVALID });
    },
  }));

/** Rightly signed, and then one byte of it or of its signature is another. */
const tampered: fc.Arbitrary<Input> = fc
  .record({
    text: eventText,
    at: fc.nat(),
    by: fc.integer({ min: 1, max: 255 }),
    inHead: fc.boolean(),
  })
  .map(({ text, at, by, inHead }) => ({
    name: `${inHead ? "signature" : "body"} tampered with at ${at} by ${by}: ${asBody(text).name}`,
    prepare: async (secretOf) => {
      const [head, body] = await post(bytesOf(text), secretOf("billing"));
      const bytes = inHead ? Buffer.from(head) : Buffer.from(body);
      // The signature has 64 digits.
      const from = inHead ? bytes.indexOf("v1=") + 3 : 0;
      const index = from + (at % (inHead ? 64 : bytes.length));
      const old = bytes[index] ?? 0;
      bytes[index] = inHead ? otherDigit(old, by) : old ^ by;
      return { steps: inHead ? [bytes, body] : [head, bytes], expected: INVALID };
    },
  }));

function otherDigit(digit: number, by: number): number {
  const digits = "0123456789abcdef";
  const index = digits.indexOf(String.fromCharCode(digit));
  return digits.charCodeAt((index + 1 + (by % 15)) % 16);
}

const SEGMENTS = ["webhooks", "stripe", "billing", "connect", "later", "", ".", "..", "%2f", "%00"];
const path = fc
  .array(
    fc.oneof(
      fc.constantFrom(...SEGMENTS),
      fc.constantFrom(...SEGMENTS),
      fc.constantFrom("__proto__", "constructor", "%", "%zz", "*", ":endpoint", "?", "#", "@", ";"),
      fc.webSegment(),
    ),
    { minLength: 1, maxLength: 6 },
  )
  .map((segments) => `/${segments.join("/")}`);

/** Names that change neither where a body ends nor who signed it. */
const headers = fc.array(
  fc
    .tuple(
      fc.oneof(
        fc.constantFrom(
          "Content-Type",
          "Content-Encoding",
          "Accept",
          "Cookie",
          "User-Agent",
          "Range",
        ),
        fc.stringMatching(/^X-[A-Za-z0-9_.-]{1,20}$/),
      ),
      headerValue,
    )
    .map(([name, text]): Header => [name, text]),
  { maxLength: 8 },
);

const UNSIGNED: Expected = { statuses: [400, 404, 405] };

const unsignedHead: fc.Arbitrary<Input> = fc
  .record({
    method: fc.constantFrom("POST", "POST", "GET", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE"),
    path,
    headers,
  })
  .map((head) => ({
    name: JSON.stringify(head),
    prepare: () => Promise.resolve({ steps: [headOf(head)], expected: UNSIGNED }),
  }));

/** A body that is cut anywhere, under any headers, is the same body. */
const inPieces: fc.Arbitrary<Input> = fc
  .record({
    text: eventText,
    cuts: fc.array(fc.integer({ min: 1, max: 200 }), { maxLength: 20 }),
    headers,
  })
  .map(({ text, cuts, headers: others }) => ({
    name: `cut at ${cuts.join()} under ${JSON.stringify(others)}: ${asBody(text).name}`,
    prepare: async (secretOf) => {
      const bytes = bytesOf(text);
      const head: Head = { length: null, headers: [CHUNKED, ...others] };
      const [first, body] = await post(bytes, secretOf("billing"), head);
      const chunks = cut(body, cuts).map((piece) => chunk(piece));
      return { steps: [first, ...chunks, LAST_CHUNK], expected: judgeSigned(body, "billing") };
    },
  }));

/** Pieces of these lengths, as far as the bytes reach, and the rest. */
function cut(bytes: Uint8Array, lengths: readonly number[]): Uint8Array[] {
  const pieces: Uint8Array[] = [];
  let from = 0;
  for (const length of [...lengths, bytes.length]) {
    if (from < bytes.length) pieces.push(bytes.subarray(from, from + length));
    from += length;
  }
  return pieces;
}

export const generators: readonly Generator[] = [
  {
    name: "signed events with hostile fields",
    input: fc.tuple(eventText, where).map(([text, at]) => signed(asBody(text), at)),
  },
  {
    name: "signed texts and bytes",
    input: fc.tuple(anyText, where).map(([text, at]) => signed(asBody(text), at)),
  },
  { name: "signatures that nobody gave", input: forgedHeader },
  { name: "signed, then tampered with", input: tampered },
  { name: "unsigned, any method and path", input: unsignedHead },
  { name: "signed, in any pieces and under any headers", input: inPieces },
];

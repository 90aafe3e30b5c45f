/** Bodies cut into pieces, cut short, too early, too late, or never sent. */
import { anEvent, json } from "./bodies.ts";
import {
  type Body,
  bytesOf,
  chunk,
  CHUNKED,
  fixed,
  type Head,
  headOf,
  type Input,
  LAST_CHUNK,
  post,
  raw,
} from "./input.ts";
import {
  type Expected,
  INVALID,
  judgeSigned,
  LARGEST_BODY_BYTES,
  TOO_LARGE,
  TOO_SLOW,
} from "./judge.ts";
import { sized } from "./texts.ts";
import type { Step } from "./wire.ts";

type Way = (body: Uint8Array) => readonly Step[];

const IN_CHUNKS: Head = { length: null, headers: [CHUNKED] };
const EXPECTING: Head = { headers: [["Expect", "100-continue"]] };

/** A rightly signed body that goes its own way behind its head. */
function on(way: string, body: Body, head: Head, steps: Way, expected?: Expected): Input {
  return {
    name: `${body.name}: ${way}`,
    prepare: async (secretOf) => {
      const bytes = bytesOf(body.text());
      const [first] = await post(bytes, secretOf("billing"), head);
      return {
        steps: [first, ...steps(bytes)],
        expected: expected ?? judgeSigned(bytes, "billing"),
      };
    },
  };
}

/** In chunks of so many bytes. */
const inChunks =
  (size: number, extension = ""): Way =>
  (body) => {
    const count = Math.ceil(body.length / size);
    const all = Array.from({ length: count }, (_, n) =>
      chunk(body.subarray(n * size, (n + 1) * size), extension),
    );
    return [Buffer.concat([...all, LAST_CHUNK])];
  };

const event = json("an event", anEvent());
const half = (body: Uint8Array): Uint8Array => body.subarray(0, body.length >> 1);
const rest = (body: Uint8Array): Uint8Array => body.subarray(body.length >> 1);

export const sizes: readonly Input[] = [
  ...[event, json("a large event", anEvent({ x: "y".repeat(300_000) }))].flatMap((body) => [
    on("at once", body, {}, (bytes) => [bytes]),
    on("in chunks of 64 KiB", body, IN_CHUNKS, inChunks(65_536)),
    on("in chunks of 60,007 bytes", body, IN_CHUNKS, inChunks(60_007)),
  ]),
  on("at once", sized(LARGEST_BODY_BYTES - 1), {}, (bytes) => [bytes]),
  on("at once", sized(LARGEST_BODY_BYTES), {}, (bytes) => [bytes]),
  on("in chunks", sized(LARGEST_BODY_BYTES), IN_CHUNKS, inChunks(65_536)),
];

export const tooLarge: readonly Input[] = [
  ...[LARGEST_BODY_BYTES + 1, 2 * LARGEST_BODY_BYTES].map(sized).flatMap((body) => [
    on("announced, and not sent", body, {}, () => []),
    on("announced, and a part sent", body, {}, (bytes) => [bytes.subarray(0, 10_000)]),
    // Who goes on sending what nobody reads may find the connection closed before the answer.
    on("announced, and sent", body, {}, (bytes) => [bytes], closedOr(TOO_LARGE)),
    on("in chunks", body, IN_CHUNKS, inChunks(65_536), closedOr(TOO_LARGE)),
  ]),
  ...["99999999999999", "4194305"].map((length) =>
    fixed(
      `a length of ${length}, and nothing else`,
      [headOf({ length: Number(length) })],
      TOO_LARGE,
    ),
  ),
];

function closedOr(expected: Expected): Expected {
  return { ...expected, statuses: [...expected.statuses, "closed"] };
}

export const framing: readonly Input[] = [
  on("in chunks of one byte", event, IN_CHUNKS, inChunks(1)),
  on("in chunks of seven bytes", event, IN_CHUNKS, inChunks(7)),
  on("in chunks with extensions", event, IN_CHUNKS, inChunks(100, ';x="y"')),
  on("in chunks with a trailer", event, IN_CHUNKS, (body) => [
    chunk(body),
    raw("0\r\nStripe-Signature: t=1\r\n\r\n"),
  ]),
  on("in chunks with capitals for sizes", event, IN_CHUNKS, (body) => [
    raw(`${body.length.toString(16).toUpperCase()}\r\n`),
    body,
    raw("\r\n"),
    LAST_CHUNK,
  ]),
  on("told to go on", event, EXPECTING, (body) => ["await 100", body]),
  on("not waiting to be told", event, EXPECTING, (body) => [body]),
  on("expecting something else", event, { headers: [["Expect", "the unexpected"]] }, (body) => [
    body,
  ]),
  on("expecting to be told, and gone", event, EXPECTING, () => ["leave"], {
    statuses: ["none"],
  }),
];

/** Nobody may be there any more to hear the answer; who still listens hears it. */
export const cutShort: readonly Input[] = [
  on("ended before it began", event, {}, () => ["end"], INVALID),
  on("ended half-way", event, {}, (body) => [half(body), "end"], INVALID),
  on("ended a byte too early", event, {}, (body) => [body.subarray(0, -1), "end"], INVALID),
  on("left before it began", event, {}, () => ["leave"], { statuses: ["none"] }),
  on("left half-way", event, {}, (body) => [half(body), "leave"], { statuses: ["none"] }),
  on("ended between chunks", event, IN_CHUNKS, (body) => [chunk(half(body)), "end"], INVALID),
  on("ended before the last chunk", event, IN_CHUNKS, (body) => [chunk(body), "end"], INVALID),
  on(
    "ended within a chunk",
    event,
    IN_CHUNKS,
    (body) => [chunk(body).subarray(0, 99), "end"],
    INVALID,
  ),
  on("no size for a chunk", event, IN_CHUNKS, (body) => [raw("zz\r\n"), body], INVALID),
  on("a negative size for a chunk", event, IN_CHUNKS, (body) => [raw("-5\r\n"), body], INVALID),
  on(
    "a size beyond numbers",
    event,
    IN_CHUNKS,
    (body) => [raw(`${"f".repeat(40)}\r\n`), body],
    INVALID,
  ),
  on(
    "a chunk longer than its size",
    event,
    IN_CHUNKS,
    (body) => [raw("5\r\n"), body, raw("\r\n")],
    INVALID,
  ),
  on(
    "a second chunk without a size",
    event,
    IN_CHUNKS,
    (body) => [chunk(half(body)), rest(body)],
    INVALID,
  ),
  on("a length that is too short", event, { length: 10 }, (body) => [body], INVALID),
  on("no length at all", event, { length: null }, (body) => [body], INVALID),
];

const DRIP_MS = 100;
const NEVER = 1_000_000;

/** All of them answered at the same time: none comes to its end. */
export const slow: readonly Input[] = [
  fixed("a head, and nothing", [headOf({ length: 100 })], TOO_SLOW),
  fixed("a head with chunks, and nothing", [headOf(IN_CHUNKS)], TOO_SLOW),
  fixed(
    "a byte now and then",
    [headOf({ length: NEVER }), { drip: raw(" "), everyMs: DRIP_MS }],
    TOO_SLOW,
  ),
  fixed(
    "a chunk now and then",
    [headOf(IN_CHUNKS), { drip: chunk(raw("[")), everyMs: DRIP_MS }],
    TOO_SLOW,
  ),
  fixed(
    "a chunk's size, digit by digit",
    [headOf(IN_CHUNKS), { drip: raw("0"), everyMs: DRIP_MS }],
    TOO_SLOW,
  ),
  on("all but its last byte", event, {}, (body) => [body.subarray(0, -1)], TOO_SLOW),
  on("all but its last chunk", event, IN_CHUNKS, (body) => [chunk(body)], TOO_SLOW),
  on("half of it", sized(LARGEST_BODY_BYTES), {}, (body) => [half(body)], TOO_SLOW),
  on("told to go on, and not going on", event, EXPECTING, () => ["await 100"], TOO_SLOW),
  ...["/nothing/here", "/webhooks/stripe/nobody"].map((path) =>
    fixed(`a head for ${path}, and nothing`, [headOf({ path, length: 100 })], { statuses: [404] }),
  ),
  fixed("a head of another method, and nothing", [headOf({ method: "PUT", length: 100 })], {
    statuses: [405],
  }),
  // What it is depends on how much is read in five seconds; that it costs little does not.
  fixed(
    "a quarter of a million chunks of one byte",
    [
      headOf(IN_CHUNKS),
      Buffer.concat(Array<Uint8Array>(250_000).fill(chunk(raw(" ")))),
      LAST_CHUNK,
    ],
    { statuses: [400, 408] },
  ),
  on(
    "half of it, and the rest two seconds later",
    json("an event in time", anEvent({ id: "evt_in_time" }, { id: "in_in_time" })),
    {},
    (body) => [half(body), { pauseMs: 2_000 }, rest(body)],
  ),
  // No Worker hears of a head before its end, and workerd waits long for it: others must not.
  ...Array.from({ length: 20 }, (_, n) =>
    fixed(
      `an unfinished head, ${n + 1}`,
      [raw("POST / HTTP/1.1\r\nHo"), { pauseMs: 3_000 }, raw("st"), { pauseMs: 3_000 }, "leave"],
      { statuses: ["none"] },
    ),
  ),
];

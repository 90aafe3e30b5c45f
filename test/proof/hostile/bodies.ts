/** Bodies that Stripe never sent, and some that it might; what must come of each, another file says. */
import { invoiceEvent, type InvoiceEventType } from "../../local/events.ts";
import type { InvoiceFacts, InvoiceStatus, JsonObject } from "../../local/invoice-shapes.ts";
import type { Body } from "./input.ts";

const AT = 1_790_000_000;

export function invoiceFacts(status: InvoiceStatus): InvoiceFacts {
  return {
    id: "in_hostile",
    status,
    customer: "cus_hostile",
    currency: "eur",
    total: 4200,
    amountPaid: 4200,
    livemode: false,
    created: AT,
    changed: AT,
  };
}

/** A paid invoice's event, unless told otherwise, with some of its fields changed. */
export function anEvent(
  fields: JsonObject = {},
  invoice: JsonObject = {},
  type: InvoiceEventType = "invoice.paid",
): JsonObject {
  const facts = invoiceFacts(type === "invoice.voided" ? "void" : "paid");
  const event = invoiceEvent(type, facts, { id: "evt_hostile", apiVersion: "2026-10-28.endive" });
  return { ...event, data: { object: { ...event.data?.object, ...invoice } }, ...fields };
}

export function json(name: string, value: unknown): Body {
  return { name, text: () => JSON.stringify(value) };
}

/** JSON whose `"?"` is replaced by a piece of text that JSON.stringify would not write. */
export function spliced(name: string, value: unknown, piece: string | (() => string)): Body {
  return {
    name,
    text: () =>
      JSON.stringify(value).replace('"?"', () => (typeof piece === "string" ? piece : piece())),
  };
}

const EVENT = JSON.stringify(anEvent());
const utf8 = (text: string): Uint8Array => Buffer.from(text, "utf8");

const NO_EVENTS = [
  ...'null true false 0 -0 42 1e400 "" "evt_1" [] {} [{}] [[]] {"":""} {"id":"evt_1"}'.split(" "),
  ...'{"__proto__":{}} {"data":{}} { [ " } ] {] nul undefined NaN Infinity - 01 1. +1'.split(" "),
  ...'0x10 .5 {id:1} {,} [1,] {"a":1,} {"a":} "\\x" "\\u12" /**/{} {}// {}{} <event/>'.split(" "),
  ...")]}', __proto__ object=event&id=evt_1 {'id':1} (function(){while(1);})() %7B%7D".split(" "),
  "",
  " ",
  "\n",
  '{"a" 1}',
  '"\t"',
  '"\n"',
  "\0",
  "{}\0",
  "\u00a0{}",
  "\ufeff",
  "\ufeff{}",
  "\u2028{}",
  "\u202e{}",
  "\x1b[2J",
  "--x\r\n\r\n--x--",
];

export const notEvents: readonly Body[] = [
  ...NO_EVENTS.map((text): Body => ({ name: JSON.stringify(text), text: () => text })),
  { name: "an event in a list", text: () => `[${EVENT}]` },
  { name: "an event in a text", text: () => JSON.stringify(EVENT) },
  { name: "an event under __proto__", text: () => `{"__proto__":${EVENT}}` },
  { name: "an event under constructor", text: () => `{"constructor":{"prototype":${EVENT}}}` },
  { name: "two events", text: () => EVENT + EVENT },
  { name: "an event a line, twice", text: () => `${EVENT}\n${EVENT}` },
  { name: "an event behind a byte order mark", text: () => `\ufeff${EVENT}` },
  { name: "an event with a comma more", text: () => EVENT.replace(/}$/, ",}") },
  { name: "an event with a NUL behind it", text: () => `${EVENT}\0` },
  ...[1, 2, 10, EVENT.length >> 1, EVENT.length - 1].map((length): Body => ({
    name: `an event's first ${length} bytes`,
    text: () => utf8(EVENT).subarray(0, length),
  })),
  { name: "an event in UTF-16", text: () => Buffer.from(EVENT, "utf16le") },
  {
    name: "an event in UTF-16 with its mark",
    text: () => Buffer.from(`\ufeff${EVENT}`, "utf16le"),
  },
  ...Object.entries({
    "a lone continuation byte": [0x80],
    "a sequence cut short": [0xe2, 0x82],
    "an overlong slash": [0xc0, 0xaf],
    "an overlong NUL": [0xc0, 0x80],
    "a surrogate in UTF-8": [0xed, 0xa0, 0x80],
    "a pair of surrogates in UTF-8": [0xed, 0xa0, 0xbd, 0xed, 0xb8, 0x80],
    "a code point beyond Unicode": [0xf4, 0x90, 0x80, 0x80],
    "bytes of no encoding": [0xfe, 0xff],
    "Latin-1": [0xe9],
  }).map(([name, bytes]): Body => ({
    name: `an event with ${name}`,
    text: () => {
      const [before = "", after = ""] = JSON.stringify(anEvent({ note: "?" })).split("?");
      return Buffer.concat([utf8(before), Buffer.from(bytes), utf8(after)]);
    },
  })),
];

const repeat = (text: string, times: number) => (): string => text.repeat(times);
const nest = (open: string, close: string, levels: number) => (): string =>
  `${open.repeat(levels)}1${close.repeat(levels)}`;

/** The outermost object is the first level; three lead to a field of the invoice. */
export const nesting: readonly Body[] = [
  ...[1, 196, 197, 198, 1_000, 100_000].flatMap((levels) => [
    spliced(
      `${levels} levels of arrays in an invoice`,
      anEvent({}, { x: "?" }),
      nest("[", "]", levels),
    ),
    spliced(
      `${levels} levels of objects in an invoice`,
      anEvent({}, { x: "?" }),
      nest('{"a":', "}", levels),
    ),
    spliced(
      `${levels} levels of both in an invoice`,
      anEvent({}, { x: "?" }),
      nest('[{"__proto__":', "}]", levels >> 1),
    ),
    spliced(
      `${levels} levels, replaced by a later key`,
      anEvent({}, { x: "?" }),
      () => `${nest("[", "]", levels)()},"x":1`,
    ),
  ]),
  ...["[", "{", '{"a":', "[{", "]", "}"].map((open): Body => ({
    name: `100,000 times ${open}`,
    text: repeat(open, 100_000),
  })),
  { name: "4 MiB of arrays in arrays", text: nest("[", "]", 2_097_151) },
  { name: "4 MiB of objects in objects", text: nest('{"":', "}", 838_860) },
  { name: "4 MiB of brackets that open", text: repeat("[", 4_194_304) },
  spliced("brackets within texts", anEvent({ note: "?" }), () =>
    JSON.stringify(`${"[{".repeat(5_000)}"\\`),
  ),
];

/** Each kind of JSON value, and some that are special to a reader. */
export const VALUES: readonly unknown[] = [
  undefined,
  null,
  true,
  false,
  0,
  -1,
  1.5,
  2 ** 53,
  "",
  "x",
  "in_1",
  "event",
  "\0",
  "\ud800",
  "x".repeat(300),
  [],
  {},
  [{}],
  { object: {} },
  { id: "x", toString: "x", valueOf: null },
];

const FIELDS = ["id", "object", "type", "data", "livemode", "account", "created", "api_version"];

const shown = (value: unknown): string => (JSON.stringify(value) ?? "absent").slice(0, 24);

/** Every field of an event as every kind of value. */
export const fields: readonly Body[] = [
  ...FIELDS.flatMap((field) =>
    VALUES.map((value) => json(`${field}: ${shown(value)}`, anEvent({ [field]: value }))),
  ),
  ...VALUES.map((value) =>
    json(`data.object: ${shown(value)}`, anEvent({ data: { object: value } })),
  ),
  ...VALUES.map((value) =>
    json(
      `data.previous_attributes: ${shown(value)}`,
      anEvent({ data: { object: anEvent(), previous_attributes: value } }),
    ),
  ),
  ...["id", "type"].flatMap((field) =>
    VALUES.map((value) =>
      json(
        `a thin notification, ${field}: ${shown(value)}`,
        anEvent({ object: "v2.core.event", data: undefined, [field]: value }),
      ),
    ),
  ),
];

const READ = ["id", "status", "amount_paid", "currency", "customer"];
const TYPES = ["invoice.paid", "invoice.payment_succeeded", "invoice.voided"] as const;

/** Every field that is read of an invoice as every kind of value. */
export const invoices: readonly Body[] = TYPES.flatMap((type) =>
  READ.flatMap((field) =>
    VALUES.map((value) =>
      json(`${type}, ${field}: ${shown(value)}`, anEvent({}, { [field]: value }, type)),
    ),
  ),
);

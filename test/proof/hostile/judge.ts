/**
 * What must come of a rightly signed body, read off the README and written anew: it shares no line
 * with the product, so that neither can hide a fault of the other.
 */
import type { Status } from "./wire.ts";

export interface Expected {
  /** The right answers to it: nearly always one. */
  readonly statuses: readonly Status[];
  /** The answer's very text; absent where it is not the Worker's. */
  readonly text?: string;
  /** The inbox row that must be there; absent: none. */
  readonly row?: Row;
  /** Whether a payment is booked. */
  readonly booked?: boolean;
}

/** Endpoint, id, type and end, as a JSON array. */
export type Row = string;

/** The endpoints of the proof's receiver. */
export type Where = "billing" | "later" | "connect";

export const INVALID: Expected = { statuses: [400], text: '{"outcome":"invalid"}' };
export const TOO_LARGE: Expected = { statuses: [413], text: '{"outcome":"too_large"}' };
export const TOO_SLOW: Expected = { statuses: [408], text: '{"outcome":"too_slow"}' };
/** workerd's own answer; who has more to send may find the connection closed before it. */
export const HEAD_TOO_LARGE: Expected = { statuses: [431, "closed"] };

export const LARGEST_BODY_BYTES = 4 * 1024 * 1024;

type Json = Readonly<Record<string, unknown>>;

export function judgeSigned(body: Uint8Array, where: Where): Expected {
  if (body.length > LARGEST_BODY_BYTES) return TOO_LARGE;
  const text = decode(body);
  if (text === null || depthOf(text) > 200) return INVALID;
  const event = parse(text);
  if (!isObject(event) || !isEvent(event)) return INVALID;

  const { id, type } = event;
  const taken = (outcome: string, end: string, booked: boolean): Expected => ({
    statuses: [200],
    text: JSON.stringify({ outcome, event: id }),
    row: JSON.stringify([where, id, type, end]),
    booked,
  });
  const reason = reasonToIgnore(event, where);
  if (reason !== null) return taken("ignored", `ignored: ${reason}`, false);
  const { end, booked } = judgeInvoice(type, asStored(text, event));
  return taken(where === "later" ? "stored" : end, end, booked);
}

function isEvent(event: Json): event is Json & { id: string; type: string } {
  const { id, type, object, data } = event;
  const named =
    typeof id === "string" &&
    /^[!-~]{1,255}$/.test(id) &&
    typeof type === "string" &&
    /^[^\0\p{Surrogate}]{1,255}$/u.test(type);
  if (!named) return false;
  if (object === "v2.core.event") return true;
  return (object === undefined || object === "event") && isObject(data) && isObject(data["object"]);
}

function reasonToIgnore(event: Json & { id: string; type: string }, where: Where): string | null {
  const { id, type, object, livemode, account } = event;
  if (/^evt_0{14,}$|_0{14}$/.test(id)) return "test_id";
  if (object === "v2.core.event") return "thin";
  if (livemode !== false) return "livemode";
  const connected = account !== undefined && account !== null && account !== "";
  if (connected !== (where === "connect")) return "account";
  return where !== "connect" && STATES.has(type) ? null : "no_handler";
}

/** For each type with a handler, the state that it names for an invoice without a status. */
const STATES = new Map([
  ["invoice.created", "draft"],
  ["invoice.finalized", "open"],
  ["invoice.updated", "?"],
  ["invoice.payment_failed", "open"],
  ["invoice.marked_uncollectible", "uncollectible"],
  ["invoice.voided", "void"],
  ["invoice.paid", "paid"],
  ["invoice.payment_succeeded", "paid"],
  ["invoice.deleted", "?"],
]);

interface End {
  readonly end: string;
  readonly booked: boolean;
}

const PROCESSED: End = { end: "processed", booked: false };
const NEEDS_REVIEW: End = { end: "needs_review", booked: false };

/** As the first that the books hear of its invoice. */
function judgeInvoice(type: string, event: Json): End {
  const data = isObject(event["data"]) ? event["data"] : {};
  const invoice = isObject(data["object"]) ? data["object"] : {};
  if (type === "invoice.deleted") return PROCESSED;
  const status = invoice["status"] ?? STATES.get(type);
  const known = ["draft", "open", "uncollectible", "paid", "void"].some((one) => one === status);
  if (!known && (invoice["status"] ?? null) !== null) return NEEDS_REVIEW;
  if (type === "invoice.paid" && status !== "paid") return NEEDS_REVIEW;
  const { id, amount_paid: amount } = invoice;
  if (typeof id !== "string" || id === "" || Array.from(id).length > 255) return NEEDS_REVIEW;
  const pays = type === "invoice.paid" || type === "invoice.payment_succeeded";
  if (!pays || status !== "paid") return PROCESSED;
  if (typeof amount !== "number" || !Number.isSafeInteger(amount) || amount < 0) {
    return NEEDS_REVIEW;
  }
  return { end: "processed", booked: amount > 0 };
}

function isObject(value: unknown): value is Json {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function decode(body: Uint8Array): string | null {
  const text = new TextDecoder("utf-8", { ignoreBOM: true }).decode(body);
  return Buffer.from(text, "utf8").equals(body) ? text : null;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** A number of more than 400 digits is stored, and handled, as its text. */
function asStored(text: string, event: Json): Json {
  if (!/\d[eE]|\d{400}/.test(text)) return event;
  const value: unknown = JSON.parse(
    text,
    (_key: string, part: unknown, context?: { source?: string }) => {
      const source = typeof part === "number" ? (context?.source ?? "") : "";
      // Near enough: none of the inputs has a mantissa and an exponent that matter together.
      const exponent = Math.abs(Number(/e(.*)$/i.exec(source)?.[1] ?? 0));
      return source.length > 400 || exponent >= 400 ? source : part;
    },
  );
  return isObject(value) ? value : event;
}

/** Of the text without its strings. */
function depthOf(text: string): number {
  const brackets = text.replaceAll(/"[^"\\]*(?:\\.[^"\\]*)*"|[^[\]{}"]+/gs, "");
  let depth = 0;
  let deepest = 0;
  for (const bracket of brackets) {
    depth += bracket === "[" || bracket === "{" ? 1 : -1;
    deepest = Math.max(deepest, depth);
  }
  return deepest;
}

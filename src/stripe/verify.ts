/**
 * Raw bytes, header and secrets in; a VerifiedEvent out, or what is wrong with them.
 * Only this file makes a VerifiedEvent: from a signed body, from an inbox row that was one, or from
 * what Stripe's own API answered: an event, or an object told as the event that was missed.
 */
import { Stripe } from "stripe";
import * as v from "valibot";
import { isStorableText, nestingDepth, toStorableJson } from "../db/storable-json.ts";

/** Not exported: what carries it was made here. */
const verified = Symbol("verified");
type Verified = { readonly [verified]: true };

/** Stripe's own type of an event, proved to be Stripe's. Its age may be that of any API version. */
export type StripeEvent<Type extends Stripe.Event["type"] = Stripe.Event["type"]> = Extract<
  Stripe.Event,
  { type: Type }
> &
  Verified;

type Notification = Stripe.V2.Core.EventNotification;
type NotificationOf<Type extends Notification["type"]> = Extract<Notification, { type: Type }>;

/** A thin (v2) notification as it was signed: it names its object and does not hold it. */
export type ThinEvent<Type extends Notification["type"] = Notification["type"]> = Omit<
  NotificationOf<Type>,
  "context" | "fetchEvent" | "fetchRelatedObject"
> & {
  /** The account, or organisation and account, that it is about; null: our own. */
  readonly context?: string | null;
} & Verified;

/**
 * The object that a notification names; never, where its type names none. What the SDK's types have as a
 * bigint comes as text: nothing of it is converted.
 */
export type RelatedObject<Type extends Notification["type"]> =
  NotificationOf<Type> extends { fetchRelatedObject(): Promise<infer Related> } ? Related : never;

/** The event behind a notification, with its `data`. */
export type FullEvent<Type extends Notification["type"]> =
  NotificationOf<Type> extends { fetchEvent(): Promise<infer Event> }
    ? Omit<Event, "fetchRelatedObject">
    : never;

/** An event that Stripe signed. */
export interface VerifiedEvent extends Verified {
  readonly id: string;
  readonly type: string;
  /** A v2 notification: it names its object and does not hold it. */
  readonly thin: boolean;
  readonly livemode: boolean | null;
  /** Whether the event is of an account connected to ours: it is named in `account`, or `context`. */
  readonly connected: boolean;
  /** `data.object.id` where it is one; of a notification, `related_object.id`. */
  readonly objectId: string | null;
  /** What a handler gets: the value of `json`; of a notification, a ThinEvent. */
  readonly payload: StripeEvent;
  /** The JSON text as it is stored. */
  readonly json: string;
  /** Whether `json` differs from what was sent, because jsonb refuses what was sent. */
  readonly altered: boolean;
}

/** Why a delivery is not an event of ours; `detail` is safe to log. */
export interface InvalidWebhook {
  readonly invalid: "signature" | "timestamp" | "shape";
  readonly detail: string;
}

/** Deeper JSON is refused: every parser behind us, Postgres' too, recurses. */
const DEEPEST_NESTING = 200;
const LONGEST_NAME = 255;

const JsonObject = v.custom<Readonly<Record<string, unknown>>>(
  (value) => typeof value === "object" && value !== null && !Array.isArray(value),
);
export const EventId = v.pipe(v.string(), v.regex(/^[\x21-\x7e]{1,255}$/));
export const EventType = v.pipe(
  v.string(),
  v.check((type) => type !== "" && Array.from(type).length <= LONGEST_NAME && isStorableText(type)),
);
const Snapshot = v.pipe(
  JsonObject,
  v.object({
    object: v.optional(v.literal("event")),
    id: EventId,
    type: EventType,
    data: v.pipe(JsonObject, v.object({ object: JsonObject })),
  }),
);
const Origin = v.object({
  livemode: v.fallback(v.nullable(v.boolean()), null),
  account: v.optional(v.unknown()),
  context: v.optional(v.unknown()),
  related_object: v.optional(v.unknown()),
});
const Thin = v.pipe(
  JsonObject,
  v.object({ object: v.literal("v2.core.event"), id: EventId, type: EventType }),
);

/**
 * @param body the exact bytes that were posted.
 * @param header `stripe-signature`; its scheme: https://docs.stripe.com/webhooks/signature
 * @param secrets tried one after the other; several while one is being rolled.
 * @param toleranceSeconds how far the signature's time may be from ours, in either direction.
 */
export async function verifyEvent(
  body: Uint8Array,
  header: string | null,
  secrets: readonly string[],
  toleranceSeconds: number,
  nowMs: number = Date.now(),
): Promise<VerifiedEvent | InvalidWebhook> {
  const signedAt = signatureTime(header);
  if (header === null || signedAt === null) return invalid("signature", "header");
  // The SDK's own check is one-sided: a time in the future passes it.
  if (Math.abs(Math.floor(nowMs / 1000) - signedAt) > toleranceSeconds) {
    return invalid("timestamp", "outside the tolerance");
  }
  const text = decode(body);
  if (text === null) return invalid("signature", "not UTF-8");
  if (!(await isSigned(text, header, secrets, toleranceSeconds, nowMs))) {
    return invalid("signature", "no secret matches");
  }
  return shapeEvent(text);
}

/**
 * The event of an inbox row, which only the verifier and Stripe's own API write.
 *
 * @param json the row's payload, as text.
 */
export function eventFromInbox(json: string, altered: boolean): VerifiedEvent {
  const event = shapeEvent(json, { altered });
  if ("invalid" in event) throw new Error(`Bug! The inbox holds no event: ${event.detail}.`);
  return event;
}

/**
 * An event as Stripe's API answered it to our own key, or one that tells what that answered.
 *
 * @param json its text.
 */
export function eventFromApi(json: string): VerifiedEvent | InvalidWebhook {
  return shapeEvent(json);
}

/** @param stored of text that is stored already: what Postgres gives back, it can hold. */
function shapeEvent(
  text: string,
  stored: { readonly altered: boolean } | null = null,
): VerifiedEvent | InvalidWebhook {
  if (!stored && nestingDepth(text) > DEEPEST_NESTING) return invalid("shape", "nesting");
  const parsed = parse(text);
  if (parsed === undefined) return invalid("shape", "not JSON");

  const isThin = v.is(v.object({ object: v.literal("v2.core.event") }), parsed);
  const event = isThin ? v.safeParse(Thin, parsed) : v.safeParse(Snapshot, parsed);
  if (!event.success) return invalid("shape", v.getDotPath(event.issues[0]) ?? "not an object");

  const { json, value, altered } = stored
    ? { json: text, value: parsed, ...stored }
    : toStorableJson(text, parsed);
  const origin = v.parse(Origin, value);
  const account = isThin ? origin.context : origin.account;
  const object = "data" in event.output ? event.output.data.object : origin.related_object;
  return {
    id: event.output.id,
    type: event.output.type,
    thin: isThin,
    livemode: origin.livemode,
    connected: account !== undefined && account !== null && account !== "",
    objectId: objectIdOf(object),
    payload: asStripeEvent(value),
    json,
    altered,
    [verified]: true,
  };
}

/** Signed by Stripe and of an event's shape; of which API version, its reader must find out. */
function asStripeEvent(value: unknown): StripeEvent {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- The signature is the proof.
  return value as StripeEvent;
}

/** Bounded, because it is indexed; a longer one is no id of Stripe's. */
function objectIdOf(object: unknown): string | null {
  const id = v.is(JsonObject, object) ? object["id"] : null;
  if (typeof id !== "string" || id === "" || Array.from(id).length > LONGEST_NAME) return null;
  return isStorableText(id) ? id : null;
}

/** The one `t` of the header, in seconds; null when there is none, or more than one. */
function signatureTime(header: string | null): number | null {
  const times = (header ?? "").split(",").filter((part) => part.startsWith("t="));
  const time = times.length === 1 ? /^t=(\d{1,12})$/.exec(times.join()) : null;
  return time ? Number(time[1]) : null;
}

async function isSigned(
  text: string,
  header: string,
  secrets: readonly string[],
  toleranceSeconds: number,
  nowMs: number,
): Promise<boolean> {
  const { signature } = Stripe.webhooks;
  if (!signature) throw new Error("Bug! The stripe package offers no signature check.");
  const webCrypto = Stripe.createSubtleCryptoProvider();
  for (const secret of secrets) {
    try {
      await signature.verifyHeaderAsync(text, header, secret, toleranceSeconds, webCrypto, nowMs);
      return true;
    } catch (error) {
      // Anything else is a fault of ours, and must not be answered as Stripe's.
      if (!(error instanceof Stripe.errors.StripeSignatureVerificationError)) throw error;
    }
  }
  return false;
}

/** Text whose UTF-8 is exactly `body`: a byte order mark stays, a broken sequence is refused. */
function decode(body: Uint8Array): string | null {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(body);
  } catch {
    return null;
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function invalid(reason: InvalidWebhook["invalid"], detail: string): InvalidWebhook {
  return { invalid: reason, detail };
}

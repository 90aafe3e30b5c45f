/** What an operator wants to see, read from a URL: as it should be, or why it is not. */
import * as v from "valibot";
import { objectsOfCustomer } from "../billing/trace.ts";
import type { EventPaging, Place } from "../inbox/listing.ts";
import type { EventFilter } from "../inbox/listing-paths.ts";
import type { Shown } from "../inbox/selection.ts";
import type { Key } from "../inbox/transitions.ts";
import type { Paging, Spot } from "../operate/records.ts";
import type { ShownMessages } from "../outbox/review.ts";
import { BadRequest, isDay, Paged, parse, Text, Tie, Time } from "./ops-fields.ts";

const Events = v.strictObject({
  state: v.optional(
    v.pipe(
      v.picklist(["waiting", "needs_review", "ignored", "processed"]),
      v.description("must be waiting, needs_review, ignored or processed"),
    ),
  ),
  reason: v.optional(Text),
  endpoint: v.optional(Text),
  type: v.optional(Text),
  since: v.optional(Time),
  until: v.optional(Time),
  event_id: v.optional(Text),
  object_id: v.optional(Text),
  customer_id: v.optional(Text),
  ...Paged,
});

/** @throws BadRequest */
export function readEventQuery(query: Record<string, string>): {
  readonly filter: EventFilter;
  readonly paging: EventPaging;
} {
  const { order, limit, after, event_id, object_id, customer_id, ...filter } = parse(Events, query);
  if (filter.reason !== undefined && (filter.state ?? "processed") === "processed") {
    throw new BadRequest("reason: needs a state, which is waiting, needs_review or ignored");
  }
  return {
    filter: {
      ...filter,
      eventId: event_id,
      objectId: object_id,
      objects: customer_id === undefined ? undefined : objectsOfCustomer(customer_id),
    },
    paging: { order, limit, after: after === undefined ? null : readPlace(after) },
  };
}

/** @returns null for what can be the key of no event. */
export function readKey(endpoint: string, eventId: string): Key | null {
  return v.is(Text, endpoint) && v.is(Text, eventId) ? { endpoint, eventId } : null;
}

/** A place, as it travels in a URL. */
export function writePlace({ receivedAt, endpoint, eventId }: Place): string {
  return writeCursor([receivedAt, endpoint, eventId]);
}

/** A spot, as it travels in a URL. */
export function writeSpot({ time, tie }: Spot): string {
  return writeCursor([time, tie]);
}

function writeCursor(parts: readonly (string | number)[]): string {
  return Buffer.from(JSON.stringify(parts)).toString("base64url");
}

const ExactTime = v.pipe(
  v.string(),
  v.regex(/^[12]\d{3}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{6}Z$/),
  v.check((text) => isDay(text) && !Number.isNaN(Date.parse(text))),
);
const PlaceParts = v.strictTuple([ExactTime, Text, Text]);
const SpotParts = v.strictTuple([ExactTime, Tie]);
const IdSpotParts = v.strictTuple([ExactTime, v.pipe(v.string(), v.regex(/^\d{1,18}$/))]);

function readPlace(text: string): Place {
  const [receivedAt, endpoint, eventId] = readCursor(PlaceParts, text);
  return { receivedAt, endpoint, eventId };
}

function readCursor<S extends v.GenericSchema>(
  schema: S,
  text: string,
  name: "after" | "shown" = "after",
): v.InferOutput<S> {
  try {
    const parts: unknown = JSON.parse(Buffer.from(text, "base64url").toString());
    return v.parse(schema, parts);
  } catch {
    throw new BadRequest(
      name === "after"
        ? "after: must be the next of an earlier page"
        : "shown: must be as it was given",
    );
  }
}

const ShownParts = v.strictTuple([ExactTime, ExactTime, Text, Text]);
const ShownMessageParts = v.strictTuple([ExactTime, v.pipe(v.number(), v.safeInteger())]);

/** What a person has seen counted, as it travels in a form. */
export function writeShown({ at, receivedAt, endpoint, eventId }: Shown): string {
  return writeCursor([at, receivedAt, endpoint, eventId]);
}

/** @throws BadRequest */
export function readShown(text: string): Shown {
  const [at, receivedAt, endpoint, eventId] = readCursor(ShownParts, text, "shown");
  return { at, receivedAt, endpoint, eventId };
}

export function writeShownMessages({ at, id }: ShownMessages): string {
  return writeCursor([at, id]);
}

/** @throws BadRequest */
export function readShownMessages(text: string): ShownMessages {
  const [at, id] = readCursor(ShownMessageParts, text, "shown");
  return { at, id };
}

const RateQuery = v.strictObject({
  per: v.pipe(v.picklist(["minute", "hour"]), v.description("must be minute or hour")),
  endpoint: v.optional(Text),
  type: v.optional(Text),
});

/** @throws BadRequest */
export function readRateQuery(query: Record<string, string>) {
  return parse(RateQuery, query);
}

const MESSAGE_STATES = ["waiting", "not_done", "needs_review", "done"] as const;
const Messages = v.strictObject({
  state: v.optional(
    v.pipe(v.picklist(MESSAGE_STATES), v.description(`must be ${MESSAGE_STATES.join(" or ")}`)),
    "needs_review",
  ),
  reason: v.optional(Text),
  ...Paged,
});
const Discrepancies = v.strictObject({
  open: v.optional(v.pipe(v.picklist(["true", "false"]), v.description("must be true or false"))),
  kind: v.optional(Text),
  ...Paged,
});
const Pages = v.strictObject(Paged);

/** @throws BadRequest */
export function readMessageQuery(query: Record<string, string>) {
  const { state, reason, ...paged } = parse(Messages, query);
  if (reason !== undefined && state !== "needs_review") {
    throw new BadRequest("reason: is known of those in state needs_review alone");
  }
  return { filter: { state, reason }, paging: toPaging(paged, IdSpotParts) };
}

/** @throws BadRequest */
export function readDiscrepancyQuery(query: Record<string, string>) {
  const { open, kind, ...paged } = parse(Discrepancies, query);
  return {
    filter: { kind, open: open === undefined ? undefined : open === "true" },
    paging: toPaging(paged, IdSpotParts),
  };
}

/** @throws BadRequest */
export function readActionQuery(query: Record<string, string>): Paging {
  return toPaging(parse(Pages, query), IdSpotParts);
}

/** @throws BadRequest */
export function readGapQuery(query: Record<string, string>): Paging {
  return toPaging(parse(Pages, query), SpotParts);
}

function toPaging(
  { order, limit, after }: v.InferOutput<typeof Pages>,
  parts: typeof IdSpotParts | typeof SpotParts,
): Paging {
  if (after === undefined) return { order, limit, after: null };
  const [time, tie] = readCursor(parts, after);
  return { order, limit, after: { time, tie } };
}

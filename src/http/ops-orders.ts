/** What an operator wants to be done, read from a body: as it should be, or why it is not. */
import * as v from "valibot";
import { discrepancies } from "../db/schema.ts";
import type { Selection } from "../inbox/selection.ts";
import type { MessageSelection } from "../outbox/review.ts";
import type { DiscrepancyKind } from "../reconcile/discrepancies.ts";
import { BadRequest, Cursor, Id, parse, Text, Time, Why, wholeNumber } from "./ops-fields.ts";
import { readShown, readShownMessages } from "./ops-query.ts";

const EventSelection = v.strictObject({
  event_id: v.optional(Text),
  endpoint: v.optional(Text),
  reason: v.optional(Text),
  ignored_reason: v.optional(Text),
  shown: v.optional(Cursor),
});
const MessageChoice = v.strictObject({
  message_id: v.optional(Id),
  reason: v.optional(Text),
  not_done_hours: v.optional(wholeNumber(0, 100_000)),
  shown: v.optional(Cursor),
});
/** How many were shown, and agreed to. */
const Agreed = { count: wholeNumber(1, Number.MAX_SAFE_INTEGER), why: Why };
const EventRequeue = v.strictObject({ ...EventSelection.entries, ...Agreed });
const MessageRequeue = v.strictObject({ ...MessageChoice.entries, ...Agreed });
const Resolution = v.strictObject({ note: Why, found_at: v.optional(Time) });
const Kind = v.pipe(
  v.picklist(discrepancies.kind.enumValues),
  v.description(`must be ${discrepancies.kind.enumValues.join(" or ")}`),
);
const KindChoice = v.strictObject({ kind: Kind });
const KindResolution = v.strictObject({
  kind: Kind,
  note: Why,
  count: Agreed.count,
  found_until: Time,
  last_id: v.optional(Id),
});

/** @throws BadRequest */
export function readEventSelection(from: unknown): Selection {
  return toSelection(parse(EventSelection, from));
}

/** @throws BadRequest */
export function readEventRequeue(from: unknown) {
  const { count, why, ...selection } = parse(EventRequeue, from);
  return { selection: toSelection(selection), count, why };
}

/** @throws BadRequest */
export function readMessageSelection(from: unknown): MessageSelection {
  return toMessageSelection(parse(MessageChoice, from));
}

/** @throws BadRequest */
export function readMessageRequeue(from: unknown) {
  const { count, why, ...selection } = parse(MessageRequeue, from);
  return { selection: toMessageSelection(selection), count, why };
}

/** @throws BadRequest */
export function readResolution(from: unknown): {
  readonly note: string;
  /** As it was seen; null: however it is now. */
  readonly foundAt: Date | null;
} {
  const { note, found_at } = parse(Resolution, from);
  return { note, foundAt: found_at ?? null };
}

/** @throws BadRequest */
export function readKind(from: unknown): DiscrepancyKind {
  return parse(KindChoice, from).kind;
}

/** @throws BadRequest */
export function readKindResolution(from: unknown) {
  const { kind, note, count, found_until, last_id } = parse(KindResolution, from);
  return { kind, note, count, foundUntil: found_until, lastId: last_id ?? null };
}

/** @throws BadRequest */
export function readId(text: string): number {
  const id = v.safeParse(Id, text);
  if (!id.success) throw new BadRequest("The id must be a whole number.");
  return id.output;
}

function toSelection(chosen: v.InferOutput<typeof EventSelection>): Selection {
  const { event_id, endpoint, reason, ignored_reason } = chosen;
  const shown = chosen.shown === undefined ? undefined : readShown(chosen.shown);
  const given = [event_id, reason, ignored_reason].filter((one) => one !== undefined);
  if (given.length === 1 && event_id !== undefined) {
    return { eventId: event_id, ...(endpoint === undefined ? {} : { endpoint }), shown };
  }
  if (given.length === 1 && endpoint === undefined) {
    if (reason !== undefined) return { reason, shown };
    if (ignored_reason !== undefined) return { ignoredReason: ignored_reason, shown };
  }
  throw new BadRequest(
    "Say which: event_id (and endpoint, where two have it), or reason, or ignored_reason.",
  );
}

function toMessageSelection(chosen: v.InferOutput<typeof MessageChoice>): MessageSelection {
  const { message_id, reason, not_done_hours } = chosen;
  const shown = chosen.shown === undefined ? undefined : readShownMessages(chosen.shown);
  const all: MessageSelection[] = [
    ...(message_id === undefined ? [] : [{ messageId: message_id, shown }]),
    ...(reason === undefined ? [] : [{ reason, shown }]),
    ...(not_done_hours === undefined ? [] : [{ leftHoursAgo: not_done_hours, shown }]),
  ];
  const [selection] = all;
  if (selection && all.length === 1) return selection;
  throw new BadRequest("Say which: one of message_id, reason and not_done_hours.");
}

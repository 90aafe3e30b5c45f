/** What an operator wants to be done, read from a body: as it should be, or why it is not. */
import * as v from "valibot";
import type { Selection } from "../inbox/transitions.ts";
import type { MessageSelection } from "../outbox/review.ts";
import { BadRequest, Id, parse, Text, Time, Why, wholeNumber } from "./ops-fields.ts";

const EventSelection = v.strictObject({
  event_id: v.optional(Text),
  endpoint: v.optional(Text),
  reason: v.optional(Text),
  ignored_reason: v.optional(Text),
});
const MessageChoice = v.strictObject({
  message_id: v.optional(Id),
  reason: v.optional(Text),
  not_done_hours: v.optional(wholeNumber(0, 100_000)),
});
/** How many were shown, and agreed to. */
const Agreed = { count: wholeNumber(1, Number.MAX_SAFE_INTEGER), why: Why };
const EventRequeue = v.strictObject({ ...EventSelection.entries, ...Agreed });
const MessageRequeue = v.strictObject({ ...MessageChoice.entries, ...Agreed });
const Resolution = v.strictObject({ note: Why, found_at: v.optional(Time) });

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
export function readId(text: string): number {
  const id = v.safeParse(Id, text);
  if (!id.success) throw new BadRequest("The id must be a whole number.");
  return id.output;
}

function toSelection(chosen: v.InferOutput<typeof EventSelection>): Selection {
  const { event_id, endpoint, reason, ignored_reason } = chosen;
  const given = [event_id, reason, ignored_reason].filter((one) => one !== undefined);
  if (given.length === 1 && event_id !== undefined) {
    return endpoint === undefined ? { eventId: event_id } : { eventId: event_id, endpoint };
  }
  if (given.length === 1 && endpoint === undefined) {
    if (reason !== undefined) return { reason };
    if (ignored_reason !== undefined) return { ignoredReason: ignored_reason };
  }
  throw new BadRequest(
    "Say which: event_id (and endpoint, where two have it), or reason, or ignored_reason.",
  );
}

function toMessageSelection(chosen: v.InferOutput<typeof MessageChoice>): MessageSelection {
  const { message_id, reason, not_done_hours } = chosen;
  const all: MessageSelection[] = [
    ...(message_id === undefined ? [] : [{ messageId: message_id }]),
    ...(reason === undefined ? [] : [{ reason }]),
    ...(not_done_hours === undefined ? [] : [{ leftHoursAgo: not_done_hours }]),
  ];
  const [selection] = all;
  if (selection && all.length === 1) return selection;
  throw new BadRequest("Say which: one of message_id, reason and not_done_hours.");
}

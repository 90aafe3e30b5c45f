/**
 * What a person does, and its record: one transaction for both. It never touches more than was agreed
 * to; what it has changed, it finds changed the next time. What changed nothing leaves no record.
 */
import { sql } from "drizzle-orm";
import type { Connection, Write } from "../db/connect.ts";
import { operatorActions as actions } from "../db/schema.ts";
import { inOneFlight, inTransaction, type Timeouts } from "../db/transaction.ts";
import type { Selection } from "../inbox/selection.ts";
import { requeue } from "../inbox/transitions.ts";
import { type MessageSelection, resend } from "../outbox/review.ts";
import {
  type DiscrepancyKind,
  readStanding,
  resolveById,
  resolveOfKind,
  type SeenUntil,
} from "../reconcile/discrepancies.ts";

/** Who does it, how they came in, and why. */
export interface By {
  readonly operator: string;
  readonly via: (typeof actions.$inferInsert)["via"];
  readonly why: string;
}

/** In one transaction: it takes a second or two, and holds up nobody else's. */
export const MOST_AT_ONCE = 5_000;

/** What came of it. */
export interface Done {
  /** How many rows were changed. */
  readonly affected: number;
  /** The ids of its records, the first and the last; null: nothing was changed. */
  readonly records: readonly [number, number] | null;
  /** Upon what, as it is on record. */
  readonly subject: string;
}

/**
 * Has parked or ignored events processed again.
 *
 * @param most how many were agreed to; the rest, and those beyond MOST_AT_ONCE, stay as they are.
 * @returns how many are due now.
 */
export function requeueEvents(
  db: Connection,
  selection: Selection,
  most: number,
  by: By,
  timeouts: Timeouts,
): Promise<Done> {
  const doing = requeue(selection, Math.min(most, MOST_AT_ONCE));
  return onRecord(db, doing, "requeue_events", subjectOf(selection), by, timeouts);
}

/** Has messages sent again, as `requeueEvents` does with events. */
export function requeueMessages(
  db: Connection,
  selection: MessageSelection,
  most: number,
  by: By,
  timeouts: Timeouts,
): Promise<Done> {
  const doing = resend(selection, Math.min(most, MOST_AT_ONCE));
  return onRecord(db, doing, "requeue_messages", messageSubjectOf(selection), by, timeouts);
}

/**
 * Settles a discrepancy; why is the note that stays with it.
 *
 * One that was found again since `foundAt`, as whoever settles it has seen it, stays open. One that was
 * resolved before stays as it is: nothing is affected.
 */
export async function resolveDiscrepancy(
  db: Connection,
  { id, foundAt }: { readonly id: number; readonly foundAt: Date | null },
  by: By,
  timeouts: Timeouts,
): Promise<Done | "found again" | "unknown"> {
  const doing = resolveById(id, foundAt, by.why);
  const subject = `discrepancy ${id}`;
  const done = await onRecord(db, doing, "resolve_discrepancy", subject, by, timeouts);
  if (done.affected > 0) return done;
  const [[row] = []] = await inOneFlight(db, timeouts, [readStanding(id)]);
  if (!row) return "unknown";
  return row["open"] === true ? "found again" : done;
}

/**
 * Settles discrepancies of one kind with one note, the oldest first. Those found later, or again, than
 * whoever agreed has seen stay open.
 *
 * @param most how many were agreed to, as with `requeueEvents`.
 */
export function resolveDiscrepancies(
  db: Connection,
  { kind, ...seen }: SeenUntil & { readonly kind: DiscrepancyKind },
  most: number,
  by: By,
  timeouts: Timeouts,
): Promise<Done> {
  const doing = resolveOfKind(kind, seen, Math.min(most, MOST_AT_ONCE), by.why);
  const subject = `discrepancies of kind ${kind}`;
  return onRecord(db, doing, "resolve_discrepancy", subject, by, timeouts);
}

/**
 * One batch after the other, each with its record, and never more than was agreed to.
 *
 * @param goesOn asked before each batch but the first.
 * @param onFault hears what ended it after some batches were done: those stay done.
 * @throws what the first batch fails with.
 */
export async function inBatches(
  agreed: number,
  goesOn: () => boolean,
  take: (most: number) => Promise<Done>,
  onFault: (fault: unknown) => void,
): Promise<Done> {
  let done = await take(agreed);
  while (done.affected < agreed && done.records && goesOn()) {
    try {
      const { affected, records } = await take(agreed - done.affected);
      if (!records) break;
      done = {
        ...done,
        affected: done.affected + affected,
        records: [done.records[0], records[1]],
      };
    } catch (fault) {
      onFault(fault);
      break;
    }
  }
  return done;
}

/** What an event is called in the record, at any endpoint or at one. */
export function eventSubject(eventId: string, endpoint?: string): string {
  return endpoint === undefined ? `event ${eventId}` : `event ${eventId} at ${endpoint}`;
}

function subjectOf(selection: Selection): string {
  if ("eventId" in selection) {
    return eventSubject(selection.eventId, selection.endpoint);
  }
  return "reason" in selection
    ? `events parked with ${selection.reason}`
    : `events ignored for ${selection.ignoredReason}`;
}

function messageSubjectOf(selection: MessageSelection): string {
  if ("messageId" in selection) return `message ${selection.messageId}`;
  return "reason" in selection
    ? `messages with ${selection.reason}`
    : `messages not done after ${selection.leftHoursAgo} h`;
}

function onRecord(
  db: Connection,
  doing: Write,
  action: (typeof actions.$inferInsert)["action"],
  subject: string,
  { operator, via, why }: By,
  timeouts: Timeouts,
): Promise<Done> {
  return inTransaction<Done>(db, timeouts, [doing], async ([changed = []], tx) => {
    const affected = changed.length;
    if (affected === 0) return { rollback: true, value: { affected, records: null, subject } };
    // Awaited, a round trip more: whoever acts is told where it is on record.
    const { rows } = await tx.execute(sql`
      insert into ${actions} (operator, via, action, subject, why, affected)
      values (${operator}, ${via}, ${action}, ${subject}, ${why}, ${affected}::int)
      returning id::float8 as id`);
    const id = Number(rows[0]?.["id"]);
    return { commit: [], value: { affected, records: [id, id], subject } };
  });
}

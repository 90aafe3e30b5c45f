/**
 * What a person does, and its record: one transaction for both. It never touches more than was agreed
 * to; what it has changed, it finds changed the next time. What changed nothing leaves no record.
 */
import { sql } from "drizzle-orm";
import type { Connection, Write } from "../db/connect.ts";
import { operatorActions as actions } from "../db/schema.ts";
import { inOneFlight, inTransaction, type Timeouts } from "../db/transaction.ts";
import { requeue, type Selection } from "../inbox/transitions.ts";
import { type MessageSelection, resend } from "../outbox/review.ts";
import { readStanding, resolveById } from "../reconcile/discrepancies.ts";

/** Who does it, how they came in, and why. */
export interface By {
  readonly operator: string;
  readonly via: (typeof actions.$inferInsert)["via"];
  readonly why: string;
}

/** In one transaction: it takes a second or two, and holds up nobody else's. */
export const MOST_AT_ONCE = 5_000;

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
): Promise<number> {
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
): Promise<number> {
  const doing = resend(selection, Math.min(most, MOST_AT_ONCE));
  return onRecord(db, doing, "requeue_messages", messageSubjectOf(selection), by, timeouts);
}

/**
 * Settles a discrepancy; why is the note that stays with it.
 *
 * One that was found again since `foundAt`, as whoever settles it has seen it, stays open.
 */
export async function resolveDiscrepancy(
  db: Connection,
  { id, foundAt }: { readonly id: number; readonly foundAt: Date | null },
  by: By,
  timeouts: Timeouts,
): Promise<"resolved" | "was resolved" | "found again" | "unknown"> {
  const doing = resolveById(id, foundAt, by.why);
  const subject = `discrepancy ${id}`;
  const resolved = await onRecord(db, doing, "resolve_discrepancy", subject, by, timeouts);
  if (resolved > 0) return "resolved";
  const [[row] = []] = await inOneFlight(db, timeouts, [readStanding(id)]);
  if (!row) return "unknown";
  return row["open"] === true ? "found again" : "was resolved";
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
): Promise<number> {
  return inTransaction<number>(db, timeouts, [doing], ([changed = []]) => {
    const value = changed.length;
    if (value === 0) return Promise.resolve({ rollback: true, value });
    const record = sql`insert into ${actions} (operator, via, action, subject, why, affected)
      values (${operator}, ${via}, ${action}, ${subject}, ${why}, ${value}::int)`;
    return Promise.resolve({ commit: [record], value });
  });
}

/** What an operator may do with events that need review, or were ignored: have them processed again. */
import type { Connection } from "../db/connect.ts";
import { type Count, textOf, toCount } from "../db/rows.ts";
import { webhookInbox as inbox } from "../db/schema.ts";
import { type Timeouts, inOneFlight } from "../db/transaction.ts";
import type { IgnoredReason } from "./rules.ts";
import * as transitions from "./transitions.ts";
import { countSelected, type Selection, showSelected, type Shown } from "./selection.ts";

/**
 * How many events `requeue` would take; an event at two endpoints counts twice.
 *
 * @param most counting stops there.
 */
export async function countRequeueable(
  db: Connection,
  selection: Selection,
  most: number,
  timeouts: Timeouts,
): Promise<Count> {
  const counting = countSelected(selection, most);
  const [counted] = await inOneFlight(db, timeouts, [counting]);
  return toCount(counted?.[0]?.["events"], most);
}

/** How many it would take, the oldest first, and how far they reach: what a person agrees to. */
export async function showRequeueable(
  db: Connection,
  selection: Selection,
  most: number,
  timeouts: Timeouts,
): Promise<{ readonly events: Count; readonly shown: Shown | null }> {
  const [[row] = []] = await inOneFlight(db, timeouts, [showSelected(selection, most)]);
  if (!row || row["event_id"] === null) return { events: { count: 0, more: false }, shown: null };
  return {
    events: toCount(row["events"], most),
    shown: {
      at: textOf(row, "at"),
      receivedAt: textOf(row, "received_at"),
      endpoint: textOf(row, "endpoint"),
      eventId: textOf(row, "event_id"),
    },
  };
}

/** Those that were ignored for one reason, and whose payload is there. */
export interface IgnoredGroup {
  readonly reason: IgnoredReason;
  readonly events: Count;
}

/** Of each reason, how many events `requeue` would take; one round trip. */
export async function countIgnored(
  db: Connection,
  most: number,
  timeouts: Timeouts,
): Promise<readonly IgnoredGroup[]> {
  const reasons = inbox.ignoredReason.enumValues;
  const counting = reasons.map((reason) => countSelected({ ignoredReason: reason }, most));
  const counted = await inOneFlight(db, timeouts, counting);
  return reasons.map((reason, index) => ({
    reason,
    events: toCount(counted[index]?.[0]?.["events"], most),
  }));
}

/** An event that speaks of the object and is not settled; null: there is none. */
export async function findUnsettledOf(
  db: Connection,
  objectId: string,
  timeouts: Timeouts,
): Promise<{ readonly eventId: string; readonly parked: boolean } | null> {
  const [found] = await inOneFlight(db, timeouts, [transitions.readUnsettledOf(objectId)]);
  const row = found?.[0];
  return row ? { eventId: String(row["event_id"]), parked: row["parked"] === true } : null;
}

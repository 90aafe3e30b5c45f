/** What an operator may do with events that need review, or were ignored: have them processed again. */
import type { Connection } from "../db/connect.ts";
import { type Count, toCount } from "../db/rows.ts";
import { type Timeouts, inOneFlight } from "../db/transaction.ts";
import * as transitions from "./transitions.ts";
import type { Selection } from "./transitions.ts";

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
  const counting = transitions.countRequeueable(selection, most);
  const [counted] = await inOneFlight(db, timeouts, [counting]);
  return toCount(counted?.[0]?.["events"], most);
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

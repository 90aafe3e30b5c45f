/** What an operator may do with events that need review, or were ignored: have them processed again. */
import type { Connection } from "../db/connect.ts";
import { type Timeouts, inOneFlight } from "../db/transaction.ts";
import * as transitions from "./transitions.ts";
import type { Selection } from "./transitions.ts";

/** How many events `requeue` would take. */
export async function countRequeueable(
  db: Connection,
  selection: Selection,
  timeouts: Timeouts,
): Promise<number> {
  const counting = transitions.countRequeueable(selection);
  const [counted] = await inOneFlight(db, timeouts, [counting]);
  return Number(counted?.[0]?.["events"]);
}

/** Returns how many events will be processed again; an event at two endpoints counts twice. */
export async function requeue(
  db: Connection,
  selection: Selection,
  timeouts: Timeouts,
): Promise<number> {
  const [requeued = []] = await inOneFlight(db, timeouts, [transitions.requeue(selection)]);
  return requeued.length;
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

/**
 * Broken: one transaction, and COMMIT's tag is looked at, but whoever cannot get at the event's row
 * says `duplicate`: somebody else is at work on it. That one may still fail.
 * Stripe's second attempt hears a 2xx while the first is under way; when the first is then cut, its
 * transaction is gone, and nobody comes back.
 */
import { DatabaseError } from "pg";
import { mark, type Receive, work } from "./booking.ts";

/** The SQLSTATEs of a lock that could not be had. */
const LOCK_NOT_AVAILABLE = "55P03";
const DEADLOCK_DETECTED = "40P01";

export const timeoutIsDuplicate: Receive = async (event, client) => {
  await client.query("begin");
  await client.query("set local lock_timeout = '20ms'");
  try {
    const { rowCount } = await client.query(mark(event));
    if (rowCount === 0) {
      await client.query("rollback");
      return "duplicate";
    }
    for (const write of work(event)) await client.query(write);
  } catch (error) {
    if (!(error instanceof DatabaseError)) throw error;
    if (error.code !== LOCK_NOT_AVAILABLE && error.code !== DEADLOCK_DETECTED) throw error;
    await client.query("rollback");
    return "duplicate";
  }
  const { command } = await client.query("commit");
  if (command !== "COMMIT") throw new Error("The transaction was rolled back.");
  return "processed";
};

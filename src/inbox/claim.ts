/** Takes due events under a lease, and gives back those that nobody came to. One round trip each. */
import type { Connection, Row } from "../db/connect.ts";
import { type Timeouts, inOneFlight } from "../db/transaction.ts";
import * as transitions from "./transitions.ts";
import type { Claim } from "./transitions.ts";

/** An event that was due. */
export interface DueClaim extends Claim {
  /** Whether nobody has worked on it before. */
  readonly isFirst: boolean;
}

export interface ClaimPolicy {
  readonly timeouts: Timeouts;
  readonly leaseSeconds: number;
}

/**
 * Claims at most `limit` due events.
 *
 * @param which events whose last attempt left no record are `suspects`: it may have killed the
 * Worker that made it, and they must be claimed one by one, with nothing else under way.
 */
export async function claimDue(
  db: Connection,
  which: "fresh" | "suspects",
  limit: number,
  { timeouts, leaseSeconds }: ClaimPolicy,
): Promise<readonly DueClaim[]> {
  const claiming = transitions.claimDue(which, limit, leaseSeconds);
  const [claimed = []] = await inOneFlight(db, timeouts, [claiming]);
  return claimed.map(toClaim);
}

/** Their attempts do not count, and they are due again at once. */
export async function release(
  db: Connection,
  claims: readonly Claim[],
  timeouts: Timeouts,
): Promise<void> {
  if (claims.length > 0) await inOneFlight(db, timeouts, [transitions.release(claims)]);
}

/** Parks the events whose last allowed attempt crashed; returns how many. */
export async function parkCrashed(
  db: Connection,
  maxAttempts: number,
  timeouts: Timeouts,
): Promise<number> {
  const [parked = []] = await inOneFlight(db, timeouts, [transitions.parkCrashed(maxAttempts)]);
  return parked.length;
}

function toClaim(row: Row): DueClaim {
  return {
    endpoint: String(row["endpoint"]),
    eventId: String(row["event_id"]),
    fence: Number(row["fence"]),
    isFirst: Number(row["attempts"]) === 1 && Number(row["fence"]) === 1,
  };
}

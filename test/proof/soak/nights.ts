/**
 * The time that passes in a soak: nights, for which settled rows are made older at once, and how
 * long it took from an event's first delivery until it was settled.
 */
import type { Wave } from "./waves.ts";
import type { Stage } from "../stage/stage.ts";

/** Longer than payloads are kept, shorter than keys; in hours, which no clock change lengthens. */
const AGE = "interval '960 hours'";
const LONG_AGO = "interval '480 hours'";

/**
 * Settled events age, and the nightly tick purges them.
 *
 * @returns false when Postgres was away.
 */
export async function passNight(stage: Stage, worker: string): Promise<boolean> {
  try {
    await stage.rows(`update webhook_inbox set processed_at = processed_at - ${AGE}
      where processed_at > now() - ${LONG_AGO} and payload is not null`);
  } catch {
    return false;
  }
  await stage.retain(worker);
  return true;
}

export async function countPurged(stage: Stage): Promise<number> {
  const [row] = await stage.rows(
    "select count(*)::int as purged from webhook_inbox where payload is null",
  );
  return Number(row?.["purged"]);
}

/** The longest time from a first delivery until its event was settled or parked, in seconds. */
export async function longestSettling(stage: Stage, waves: readonly Wave[]): Promise<number> {
  const rows = await stage.rows(`select endpoint || ' ' || event_id as key,
      extract(epoch from coalesce(parked_at, processed_at +
        case when processed_at < now() - ${LONG_AGO} then ${AGE} else interval '0' end))::float8
        as settled_at
    from webhook_inbox where processed_at is not null or parked_at is not null`);
  const settledAt = new Map(rows.map((row) => [String(row["key"]), Number(row["settled_at"])]));
  let longest = 0;
  for (const { firstSentAt } of waves) {
    for (const [key, sentAt] of firstSentAt) {
      longest = Math.max(longest, (settledAt.get(key) ?? 0) - sentAt / 1000);
    }
  }
  return longest;
}

/**
 * What follows a disturbance until everything is settled: Stripe delivers again, the cron ticks.
 * The times between are passed over, by making the rows older; nothing is waited for.
 */
import { isSuccess } from "../../local/deliver.ts";
import type { Delivery, Stage } from "./stage.ts";

/** What it took until everything was settled. */
export interface Recovery {
  readonly deliveries: number;
  readonly ticks: number;
  /** How long leases and back-offs kept events from being claimed; not waited for, but aged. */
  readonly waitSeconds: number;
}

export interface SettleOptions {
  /** Whose cron ticks. */
  readonly worker?: string;
  /** Called once before the ticks. */
  readonly again?: ((stage: Stage) => Promise<unknown>) | undefined;
}

const MOST_ROUNDS = 8;

/** As Stripe and the cron do; whatever is not settled after some rounds is left as it is. */
export async function settle(
  stage: Stage,
  unanswered: readonly Delivery[],
  { worker = "receiver", again }: SettleOptions = {},
): Promise<Recovery> {
  const recovery = { deliveries: 0, ticks: 0, waitSeconds: 0 };
  for (const delivery of unanswered) {
    for (let round = 0; round < MOST_ROUNDS; round++) {
      recovery.deliveries += 1;
      if (isSuccess(await stage.deliver(delivery))) break;
    }
  }
  await again?.(stage);
  for (let round = 0; round < MOST_ROUNDS; round++) {
    await stage.quiet();
    const waited = await passTime(stage);
    if (waited === null) break;
    recovery.waitSeconds += waited;
    recovery.ticks += 1;
    await stage.tick(worker);
  }
  return recovery;
}

/**
 * Makes what waits due; returns for how long that would have taken, null when nothing waits.
 * What somebody is at work on is left as it is, or that one would have to be waited for.
 */
export async function passTime(stage: Stage): Promise<number | null> {
  const waiting = await stage.rows(`
    with due as (
      select provider, endpoint, event_id from webhook_inbox
      where processed_at is null and parked_at is null and available_at > now()
      for update skip locked
    ), aged as (
      update webhook_inbox set available_at = now()
      where (provider, endpoint, event_id) in (select * from due)
    )
    select extract(epoch from available_at - now())::float8 as seconds
    from webhook_inbox where processed_at is null and parked_at is null`);
  if (waiting.length === 0) return null;
  return Math.max(0, ...waiting.map(({ seconds }) => Number(seconds)));
}

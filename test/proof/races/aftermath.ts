/**
 * What follows a race until everything is settled: Stripe delivers again, and the cron ticks. The
 * times between are passed over, by making the rows older.
 */
import type { Connection } from "../../../src/db/connect.ts";
import type { StripeEvent } from "../../local/events.ts";
import type { Scene } from "./events.ts";
import { type Racer, syncDelivery, tickOnce, type Word } from "./racers.ts";

type Answer = Word["outcome"] | undefined;

const SUCCESSES = ["processed", "stored", "duplicate", "ignored", "needs_review"] as const;
const MOST_ROUNDS = 8;

/** @param answers what each racer was told first. Whatever is not settled in time is left as it is. */
export async function settleRace(
  { db, rows }: Scene,
  racers: readonly Racer[],
  answers: readonly Answer[],
): Promise<void> {
  for (const [index, { delivers, recurs, run }] of racers.entries()) {
    if (delivers && !isSuccess(answers[index])) await redeliver(db, delivers);
    if (recurs) await run(db, () => undefined);
  }
  for (let round = 0; round < MOST_ROUNDS; round++) {
    const waiting = await rows(`update webhook_inbox set available_at = now()
      where processed_at is null and parked_at is null returning 1`);
    if (waiting.length === 0) return;
    await tickOnce(db);
  }
}

async function redeliver(db: Connection, event: StripeEvent): Promise<void> {
  for (let round = 0; round < MOST_ROUNDS; round++) {
    let answer: Answer;
    await syncDelivery(event).run(db, ({ outcome }) => {
      answer = outcome;
    });
    if (isSuccess(answer)) return;
  }
}

function isSuccess(answer: Answer): boolean {
  return SUCCESSES.some((success) => success === answer);
}

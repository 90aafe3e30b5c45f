/**
 * Round trips of a tick, from whole ticks with nothing, one event, and a few events to do: what a
 * tick with more to do takes longer is what there is more of.
 *
 * Measured on one connection at a time, where round trips add up. Each lane of a tick ends with a
 * claim that finds nothing; it is part of the empty tick.
 */
import type { Extent } from "./bench.ts";
import { newPair, type Pair, type Place, roundTrips, untilQuiet } from "./delayed.ts";
import { printTable } from "./figures.ts";
import { fillWithWaiting } from "./waiting-events.ts";

export const TICK_SETTINGS = { CONCURRENCY: "1" } as const;

/** All in one claim, by default. */
const FEW = 11;
/** How many times fewer than deliveries: a tick takes as long as many of them. */
const RARER = 3;

export interface Ticks {
  readonly empty: Pair;
  readonly one: Pair;
  readonly few: Pair;
}

export async function measureTicks(
  { worker, client, setDelay }: Place,
  { delayMs, repeats }: Extent,
): Promise<Ticks> {
  const ticks = { empty: newPair(), one: newPair(), few: newPair() };
  const sizes = { empty: 0, one: 1, few: FEW } as const;
  for (let round = 0; round < 2 * Math.ceil(repeats / RARER) + 2; round++) {
    const isDelayed = round % 2 === 1;
    setDelay(isDelayed ? delayMs : 0);
    for (const size of ["empty", "one", "few"] as const) {
      await fillWithWaiting(client, { count: sizes[size], name: `${size}_${round}` });
      const startedAt = performance.now();
      await worker.tick();
      const ms = performance.now() - startedAt;
      await untilQuiet(client);
      // The first of each pays for compiling.
      if (round >= 2) ticks[size][isDelayed ? "delayedMs" : "plainMs"].push(ms);
    }
  }
  const { rowCount } = await client.query("select from webhook_inbox where processed_at is null");
  if (rowCount !== 0) throw new Error(`The ticks left ${rowCount} events.`);
  return ticks;
}

export function printTicks({ empty, one, few }: Ticks, delayMs: number): void {
  // Repeats are few; a busy machine only adds to a tick, so the fastest was disturbed the least.
  const trips = (pair: Pair): number => roundTrips(pair, delayMs, (ms) => Math.min(...ms));
  const perEvent = (trips(few) - trips(one)) / (FEW - 1);
  printTable(
    ["tick", "round trips"],
    [
      ["the claim of a batch", (trips(one) - trips(empty) - perEvent).toFixed(1)],
      ["processing, per event", perEvent.toFixed(1)],
      ["a tick with nothing to do, its connections included", trips(empty).toFixed(1)],
    ],
  );
}

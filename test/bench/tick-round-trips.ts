/**
 * Round trips of a tick, from whole ticks with nothing, with some events and with more to do: what a
 * tick with more to do takes longer is what there is more of. Once with a transaction for each event,
 * and once with batches.
 *
 * Measured on one connection at a time, where round trips add up. Messages that were booked leave in
 * the same tick; what that takes is counted with the events.
 */
import type { Bench } from "./bench.ts";
import {
  newPair,
  onDelayedWorker,
  type Pair,
  type Place,
  roundTrips,
  untilQuiet,
} from "./delayed.ts";
import { printTable } from "./figures.ts";
import { fillWithWaiting } from "./waiting-events.ts";

export const TICK_SETTINGS = { CONCURRENCY: "1" } as const;

/** Both in one claim. */
const FEW = 10;
const MORE = 30;
/** Several claims. */
const MANY = 200;
/** How many times fewer than deliveries: a tick takes as long as many of them. */
const RARER = 3;

/** Round trips. */
export interface Ticks {
  readonly empty: number;
  /** For one more event, of those that have each a transaction of their own. */
  readonly each: number;
  /** For an event of many, all that a tick does for them included. */
  readonly batched: number;
}

export async function measureTicks(bench: Bench, delayMs: number, repeats: number): Promise<Ticks> {
  const measure = (name: string, batch: string, sizes: readonly [number, number]) =>
    onDelayedWorker(
      bench,
      `ticks_${name}_${delayMs}`,
      { ...TICK_SETTINGS, PROCESS_BATCH: batch },
      (place) => timeTicks(place, sizes, delayMs, Math.ceil(repeats / RARER)),
    );
  // Repeats are few; a busy machine only adds to a tick, so the fastest was disturbed the least.
  const trips = (pair: Pair): number => roundTrips(pair, delayMs, (ms) => Math.min(...ms));
  const [few, more] = (await measure("each", "off", [FEW, MORE])).map(trips);
  const [empty, many] = (await measure("batched", "on", [0, MANY])).map(trips);
  return {
    empty: empty ?? Number.NaN,
    each: ((more ?? Number.NaN) - (few ?? Number.NaN)) / (MORE - FEW),
    batched: ((many ?? Number.NaN) - (empty ?? Number.NaN)) / MANY,
  };
}

/** @returns for each size, ticks with so many events to do. */
async function timeTicks(
  { worker, client, setDelay }: Place,
  sizes: readonly [number, number],
  delayMs: number,
  repeats: number,
): Promise<readonly Pair[]> {
  const pairs = sizes.map((size) => ({ size, pair: newPair() }));
  for (let round = 0; round < 2 * repeats + 2; round++) {
    const isDelayed = round % 2 === 1;
    setDelay(isDelayed ? delayMs : 0);
    for (const { size, pair } of pairs) {
      await fillWithWaiting(client, { count: size, name: `of_${size}_${round}` });
      const startedAt = performance.now();
      await worker.tick();
      const ms = performance.now() - startedAt;
      await untilQuiet(client);
      // The first of each pays for compiling.
      if (round >= 2) pair[isDelayed ? "delayedMs" : "plainMs"].push(ms);
    }
  }
  const { rowCount } = await client.query("select from webhook_inbox where processed_at is null");
  if (rowCount !== 0) throw new Error(`The ticks left ${rowCount} events.`);
  return pairs.map(({ pair }) => pair);
}

export function printTicks({ empty, each, batched }: Ticks, delayMs: number): void {
  printTable(
    [`tick, ${delayMs} ms each way`, "round trips"],
    [
      ["processing, per event, each in its own transaction", each.toFixed(1)],
      [`processing, per event of ${MANY}, in batches, messages sent`, batched.toFixed(2)],
      ["a tick with nothing to do, its connections included", empty.toFixed(1)],
    ],
  );
}

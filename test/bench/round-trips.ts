/**
 * Round trips to Postgres on each path of a delivery and in a tick: the real Worker, behind a proxy
 * that delays every message. A delivery's connection set-up is counted apart: it ends with the
 * first statement. What happens behind an answer is waited for and not counted.
 *
 * Not measured: bandwidth, lost packets, TLS, and the set-up of a connection with a password.
 */
import { type Bench, type Extent, runBench } from "./bench.ts";
import {
  newPair,
  onDelayedWorker,
  type Pair,
  type Place,
  roundTrips,
  untilQuiet,
} from "./delayed.ts";
import { ASYNC_PATHS, type Path, SYNC_PATHS } from "./delivery-paths.ts";
import { median, printTable } from "./figures.ts";
import { post } from "../local/deliver.ts";
import type { Result } from "./results.ts";
import { measureTicks, printTicks, TICK_SETTINGS } from "./tick-round-trips.ts";

interface Samples {
  readonly path: Path;
  readonly setUp: Pair;
  readonly statements: Pair;
  readonly total: Pair;
}

/** Each way: 20 and 80 ms there and back. */
const DELAYS_MS = [10, 40] as const;

export async function measureRoundTrips(bench: Bench, extent: Extent): Promise<readonly Result[]> {
  const results: Result[] = [];
  for (const delayMs of DELAYS_MS) results.push(await measureAt(bench, extent, delayMs));
  return results;
}

async function measureAt(bench: Bench, { repeats }: Extent, delayMs: number): Promise<Result> {
  const sync = await onDelayedWorker(bench, `trips_sync_${delayMs}`, {}, (place) =>
    measurePaths(place, SYNC_PATHS, delayMs, repeats),
  );
  const settings = { ...TICK_SETTINGS, RECEIVE_MODE: "async" };
  const async = await onDelayedWorker(bench, `trips_async_${delayMs}`, settings, (place) =>
    measurePaths(place, ASYNC_PATHS, delayMs, repeats),
  );
  const ticks = await measureTicks(bench, delayMs, repeats);
  const paths = [...sync, ...async];
  printPaths(paths, delayMs);
  printTicks(ticks, delayMs);

  const tripsOf = (wanted: string): number => {
    const found = paths.find(({ path }) => path.name === wanted);
    return found ? roundTrips(found.statements, delayMs) : Number.NaN;
  };
  const seen = [
    { is: tripsOf("new event"), most: 2 },
    { is: tripsOf("duplicate"), most: 1 },
    { is: tripsOf("async: new event"), most: 1 },
    { is: ticks.each, most: 2 },
    { is: ticks.batched, most: 0.1 },
  ];
  return {
    what: `round trips, ${2 * delayMs} ms each: sync new, duplicate, async, process, drained in batches`,
    goal: "at most 2, 1, 1, 2 and 0.1 per event",
    peers: "",
    floor: "1 each, and 1 per batch",
    result: seen.map(({ is }) => is.toFixed(is < 0.5 ? 2 : 1)).join(", "),
    // Half a round trip is the noise of the clock, and none is a share of one.
    holds: seen.every(({ is, most }) => is <= most + (most < 1 ? 0 : 0.3)),
  };
}

async function measurePaths(
  place: Place,
  paths: readonly Path[],
  delayMs: number,
  repeats: number,
): Promise<readonly Samples[]> {
  const all = paths.map((path) => ({
    path,
    setUp: newPair(),
    statements: newPair(),
    total: newPair(),
  }));
  for (let round = 0; round < repeats * 2; round++) {
    const isDelayed = round % 2 === 1;
    place.setDelay(isDelayed ? delayMs : 0);
    for (const { path, ...kept } of all) {
      const { opened, firstStatement, answered } = await deliver(place, path, `evt_bench_${round}`);
      // The first of each pays for compiling.
      if (round < 2) continue;
      const times = {
        setUp: firstStatement - opened,
        statements: answered - firstStatement,
        total: answered - opened,
      };
      for (const part of ["setUp", "statements", "total"] as const) {
        kept[part][isDelayed ? "delayedMs" : "plainMs"].push(times[part]);
      }
    }
  }
  return all;
}

/** @returns when its connection was opened, its first statement left, and the answer came. */
async function deliver(
  { worker, client, seen }: Place,
  { status, outcome, event, before }: Path,
  id: string,
): Promise<{ opened: number; firstStatement: number; answered: number }> {
  if (before) await client.query(before);
  const answer = await post(worker.door, JSON.stringify(event(id)));
  const answered = performance.now();
  const { opened, firstStatement } = seen;
  if (answer.status !== status || answer.outcome !== outcome) {
    throw new Error(`${id}: expected ${status} ${outcome}, got ${answer.status} ${answer.outcome}`);
  }
  await untilQuiet(client);
  return { opened, firstStatement, answered };
}

function printPaths(all: readonly Samples[], delayMs: number): void {
  const trips = (measured: Pair): string => roundTrips(measured, delayMs).toFixed(1);
  printTable(
    ["path", "answer", "round trips", "connection set-up", `median with ${delayMs} ms each way`],
    all.map(({ path, setUp, statements, total }) => [
      path.name,
      `${path.status} \`${path.outcome}\``,
      trips(statements),
      trips(setUp),
      `${median(total.delayedMs).toFixed(0)} ms`,
    ]),
  );
}

if (import.meta.main) await runBench(measureRoundTrips);

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
import { measureTicks, printTicks, TICK_SETTINGS } from "./tick-round-trips.ts";

interface Samples {
  readonly path: Path;
  readonly setUp: Pair;
  readonly statements: Pair;
  readonly total: Pair;
}

export async function measureRoundTrips(bench: Bench, extent: Extent): Promise<void> {
  const sync = await onDelayedWorker(bench, "round_trips_sync", {}, (place) =>
    measurePaths(place, SYNC_PATHS, extent),
  );
  const settings = { ...TICK_SETTINGS, RECEIVE_MODE: "async" };
  const [async, ticks] = await onDelayedWorker(
    bench,
    "round_trips_async",
    settings,
    async (place) => [
      await measurePaths(place, ASYNC_PATHS, extent),
      await measureTicks(place, extent),
    ],
  );
  printPaths([...sync, ...async], extent.delayMs);
  printTicks(ticks, extent.delayMs);
}

async function measurePaths(
  place: Place,
  paths: readonly Path[],
  { delayMs, repeats }: Extent,
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

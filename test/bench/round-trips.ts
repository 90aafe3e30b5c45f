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
  results.push(await measureWebSocket(bench, extent, DELAYS_MS[1]));
  return results;
}

/** Of statements one after the other, there is less to find out. */
const MOST_REPEATS_BY_WEBSOCKET = 3;

/** The delay is behind the bridge: a WebSocket's own set-up is not counted. */
async function measureWebSocket(
  bench: Bench,
  { repeats }: Extent,
  delayMs: number,
): Promise<Result> {
  const measure = (name: string, paths: readonly Path[], settings: Record<string, string>) =>
    onDelayedWorker(
      bench,
      `trips_ws_${name}`,
      settings,
      (place) => measurePaths(place, paths, delayMs, Math.min(repeats, MOST_REPEATS_BY_WEBSOCKET)),
      bench.withWebSocketWorker,
    );
  const paths = [
    ...(await measure("sync", SYNC_PATHS, {})),
    ...(await measure("async", ASYNC_PATHS, { RECEIVE_MODE: "async" })),
  ];
  printPaths(paths, delayMs, "through a WebSocket");
  const trips = ["new event", "duplicate", "async: new event"].flatMap((wanted) =>
    paths.filter(({ path }) => path.name === wanted).map((one) => tripsOf(one, delayMs)),
  );
  return {
    what: `round trips through a WebSocket, ${2 * delayMs} ms each: sync new, duplicate, async`,
    goal: "a round trip for each statement",
    peers: "",
    floor: "",
    result: trips.map((is) => is.toFixed(1)).join(", "),
    holds: null,
  };
}

const tripsOf = ({ statements }: Samples, delayMs: number): number =>
  roundTrips(statements, delayMs);

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

  const tripsBy = (wanted: string): number => {
    const found = paths.find(({ path }) => path.name === wanted);
    return found ? tripsOf(found, delayMs) : Number.NaN;
  };
  const seen = [
    { is: tripsBy("new event"), most: 2 },
    { is: tripsBy("duplicate"), most: 1 },
    { is: tripsBy("async: new event"), most: 1 },
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

function printPaths(all: readonly Samples[], delayMs: number, road = ""): void {
  const trips = (measured: Pair): string => roundTrips(measured, delayMs).toFixed(1);
  printTable(
    [
      `path ${road}`.trim(),
      "answer",
      "round trips",
      "connection set-up",
      `median with ${delayMs} ms each way`,
    ],
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

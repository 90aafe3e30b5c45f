/**
 * Every pair of paths that can meet on one event or one invoice, raced through every interleaving
 * of its statements: each must end as one of the two serial orders does. And racers that go wrong
 * in some of them, which must be seen.
 */
import { createDatabase, createTemplate, dropDatabase } from "../../local/databases.ts";
import { startTemporaryCluster, type TemporaryCluster } from "../../local/temporary-cluster.ts";
import { everyWay, NotRepeatable, preferring } from "./interleavings.ts";
import { FAULTS, type Faults, faultsOf } from "./faults.ts";
import { describeFault, type PairReport, sectionOf } from "./report.ts";
import { type Pair, PAIRS } from "./pairs.ts";
import { openRacetrack, type Played, type Racetrack, RUNNERS } from "./racetrack.ts";
import { type Control, CONTROLS } from "./racing-controls.ts";
import type { Section } from "../report.ts";

export interface RaceOptions {
  /** Where there is a migrated template to copy databases from; by default, in a cluster of its own. */
  readonly home?: { readonly cluster: Pick<TemporaryCluster, "url">; readonly template: string };
  readonly pairs?: readonly Pair[];
  readonly controls?: readonly Control[];
  /** How many pairs are raced at a time, each on a database of its own. */
  readonly lanes?: number;
  /** Ends it before the next race. */
  readonly signal?: AbortSignal;
  readonly onPair?: (report: PairReport) => void;
}

const MOST_INTERLEAVINGS = 2_000;
/** A slow machine may make a clock of the product's tick where none should. */
const TRIES = 3;

export async function proveRaces({
  pairs = PAIRS,
  controls = CONTROLS,
  lanes = 2,
  signal,
  onPair = () => undefined,
  ...options
}: RaceOptions = {}): Promise<Section> {
  const waiting: Pair[] = [...pairs, ...controls];
  const reports = new Map<Pair, PairReport>();
  const runLane = async (databaseUrl: string): Promise<void> => {
    const track = await openRacetrack(databaseUrl);
    try {
      for (let pair = waiting.shift(); pair; pair = waiting.shift()) {
        const report = await repeatably(() => racePair(track, pair, signal));
        reports.set(pair, report);
        onPair(report);
      }
    } finally {
      await track.stop();
    }
  };
  await withDatabases(lanes, options.home, (urls) => Promise.all(urls.map(runLane)));
  return sectionOf(pairs, controls, reports);
}

async function repeatably<T>(enumerate: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await enumerate();
    } catch (error) {
      if (!(error instanceof NotRepeatable) || tries === TRIES) throw error;
    }
  }
}

export async function racePair(
  track: Racetrack,
  pair: Pair,
  signal?: AbortSignal,
): Promise<PairReport> {
  await track.arrange(pair);
  const serial: Played[] = [];
  for (const first of RUNNERS) serial.push(await track.race(pair, preferring(first)));
  const ends = serial.map(({ books }) => books);

  const faulty = { lost: 0, doubled: 0, stuck: 0, other: 0 };
  const examples: Record<keyof Faults, string | null> = {
    lost: null,
    doubled: null,
    stuck: null,
    other: null,
  };
  const statements = RUNNERS.map(() => 0);
  let blocked = 0;
  const { ways, complete } = await everyWay(async (choose) => {
    signal?.throwIfAborted();
    const played = await track.race(pair, choose);
    const { steps } = played;
    if (steps.some(({ waited }) => waited)) blocked += 1;
    for (const [index, runner] of RUNNERS.entries()) {
      const own = steps.filter(({ who }) => who === runner).length;
      statements[index] = Math.max(statements[index] ?? 0, own);
    }
    const faults = faultsOf(played, ends, pair);
    for (const kind of FAULTS) {
      if (faults[kind].length === 0) continue;
      faulty[kind] += 1;
      examples[kind] ??= describeFault(faults[kind], steps);
    }
  }, MOST_INTERLEAVINGS);
  return { name: pair.name, statements, interleavings: ways, complete, blocked, faulty, examples };
}

async function withDatabases<T>(
  count: number,
  given: RaceOptions["home"],
  use: (urls: readonly string[]) => Promise<T>,
): Promise<T> {
  if (!given) {
    const cluster = await startTemporaryCluster();
    try {
      const home = { cluster, template: await createTemplate(cluster) };
      return await withDatabases(count, home, use);
    } finally {
      await cluster.stop();
    }
  }
  const { cluster, template } = given;
  const names = Array.from({ length: count }, () => `race_${crypto.randomUUID().slice(0, 8)}`);
  try {
    const urls: string[] = [];
    for (const name of names) urls.push(await createDatabase(cluster, name, template));
    return await use(urls);
  } finally {
    for (const name of names) await dropDatabase(cluster, name);
  }
}

/**
 * Receiving, synchronously: ours beside a textbook Worker, a Worker with everything in one
 * statement, one that only keeps the event, one that only verifies, and a textbook Node server.
 * All share this machine's cores with their load, with Postgres and with the pooler.
 *
 * Not imitated: Hyperdrive itself, Cloudflare's machines, TLS. Ours has no queue bound here, since
 * none of the others tells anybody: its messages wait in the outbox.
 */
import { type Bench, runBench } from "../bench.ts";
import { median, printTable } from "../figures.ts";
import { printMachine } from "../machine.ts";
import type { Result } from "../results.ts";
import { type Far, measureFar, PLACE_NAMES, type PlaceName } from "./far.ts";
import { printParts } from "./parts.ts";
import { bundleAll, withPooler } from "./stage.ts";
import {
  CONNECTIONS,
  type Connections,
  type Race,
  race,
  type Racer,
  RACER_NAMES,
  type Sample,
} from "./throughput.ts";

/** Of each a slice with 8 and one with 32 connections in every round. */
const PLAN = { rounds: 3, warmUpSeconds: 0.5, seconds: 2 } as const;

const GOALS = { textbook: 1.7, bare: 0.9, farNode: 0.35, cpu: 1.2 } as const;

const RACERS: Readonly<Record<Racer, string>> = {
  ours: "ours",
  textbook: "textbook Worker, 8 statements",
  oneStatement: "one-statement Worker",
  bare: "bare Worker, one insert",
  verifyOnly: "verifying Worker, no database",
  node: "textbook Node server, 8 statements",
};

const PLACES: Readonly<Record<PlaceName, string>> = {
  ours: "ours, the pooler beside the Worker",
  oursFarPooler: "ours, the pooler beside Postgres",
  bare: "bare Worker, the pooler beside it",
  node: "textbook Node server, its connections open",
};

export async function measureReceive(bench: Bench): Promise<readonly Result[]> {
  const bundles = await bundleAll();
  const results = await withPooler(bench.cluster.url("postgres"), async (route, pooler) => {
    const raced = await race(bench, bundles, route, PLAN);
    printRace(raced);
    const far = await measureFar(bench, bundles, route);
    printFar(far);
    await printParts(bench, bundles, route);
    return [
      ...CONNECTIONS.map((n) => rateResult(raced, n, pooler)),
      ...far.map(farResult),
      cpuResult(raced),
    ];
  });
  return results ?? [unmeasured("receive", "No PgBouncer is installed here.")];
}

const perSecond = (samples: readonly Sample[]): number =>
  median(samples.map((sample) => sample.perSecond));

/** Null where nobody counts. */
function cpuMs(samples: readonly Sample[]): number | null {
  const known = samples.flatMap(({ cpuMsPerDelivery }) => cpuMsPerDelivery ?? []);
  return known.length === 0 ? null : median(known);
}

/** The median over the rounds, in each of which both had their slice. */
function ratio(
  race_: Race,
  one: Racer,
  other: Racer,
  n: Connections,
  of: (s: Sample) => number,
): number {
  const pairs = race_[one][n].map((sample, round) => {
    const against = race_[other][n][round];
    return against ? of(sample) / of(against) : Number.NaN;
  });
  return median(pairs);
}

function rateResult(raced: Race, n: Connections, pooler: string): Result {
  const rate = (name: Racer): string => `${perSecond(raced[name][n]).toFixed(0)}/s`;
  const times = (name: Racer): number => ratio(raced, "ours", name, n, (s) => s.perSecond);
  const [textbook, bare] = [times("textbook"), times("bare")];
  return {
    what: `receive, sync, ${n} connections, through ${pooler}`,
    goal: `≥ ${GOALS.textbook} × textbook Worker, ≥ ${GOALS.bare} × bare Worker`,
    peers: `textbook Worker ${rate("textbook")}, one-statement Worker ${rate("oneStatement")}, textbook Node ${rate("node")}`,
    floor: `bare Worker ${rate("bare")}`,
    result: `${rate("ours")}: ${textbook.toFixed(2)} × textbook, ${bare.toFixed(2)} × bare`,
    holds: textbook >= GOALS.textbook && bare >= GOALS.bare,
  };
}

function farResult({ delayMs, p50Ms }: Far): Result {
  const ms = (name: PlaceName): string => `${p50Ms[name].toFixed(0)} ms`;
  const share = p50Ms.ours / p50Ms.node;
  return {
    what: `receive, ${2 * delayMs} ms round trip to the database, p50`,
    goal: `≤ ${GOALS.farNode} × textbook Node`,
    peers: `textbook Node ${ms("node")}`,
    floor: `bare Worker ${ms("bare")}`,
    result: `${ms("ours")}: ${share.toFixed(2)} × Node (${ms("oursFarPooler")} with the pooler far from the Worker, too)`,
    holds: share <= GOALS.farNode,
  };
}

function cpuResult(raced: Race): Result {
  const what = "CPU time per delivery in workerd, 8 connections";
  const ours = cpuMs(raced.ours[8]);
  const bare = cpuMs(raced.bare[8]);
  if (ours === null || bare === null) return unmeasured(what, "Only Linux tells it.");
  const times = ratio(raced, "ours", "bare", 8, (s) => s.cpuMsPerDelivery ?? Number.NaN);
  const ms = (name: Racer): string => `${(cpuMs(raced[name][8]) ?? Number.NaN).toFixed(2)} ms`;
  return {
    what,
    goal: `≤ ${GOALS.cpu} × bare Worker`,
    peers: `textbook Worker ${ms("textbook")}, one-statement Worker ${ms("oneStatement")}`,
    floor: `bare Worker ${ms("bare")}`,
    result: `${ms("ours")}: ${times.toFixed(2)} × bare`,
    holds: times <= GOALS.cpu,
  };
}

function unmeasured(what: string, why: string): Result {
  return { what, goal: "", peers: "", floor: "", result: why, holds: null };
}

function printRace(raced: Race): void {
  const row = (name: Racer): string[] => [
    RACERS[name],
    ...CONNECTIONS.map((n) => {
      const rates = raced[name][n].map((s) => s.perSecond);
      const range = `${Math.min(...rates).toFixed(0)} to ${Math.max(...rates).toFixed(0)}`;
      return `${median(rates).toFixed(0)} (${range})`;
    }),
    ...CONNECTIONS.map((n) => cpuMs(raced[name][n])?.toFixed(2) ?? ""),
  ];
  printTable(
    [
      `receive, sync: median of ${PLAN.rounds} slices of ${PLAN.seconds} s`,
      ...CONNECTIONS.map((n) => `deliveries/s, ${n} connections`),
      ...CONNECTIONS.map((n) => `CPU ms each in workerd, ${n}`),
    ],
    RACER_NAMES.map(row),
  );
}

function printFar(far: readonly Far[]): void {
  printTable(
    ["p50 of a delivery, database far", ...far.map(({ delayMs }) => `${delayMs} ms each way`)],
    PLACE_NAMES.map((name) => [
      PLACES[name],
      ...far.map(({ p50Ms }) => `${p50Ms[name].toFixed(0)} ms`),
    ]),
  );
}

if (import.meta.main) await runBench(printMachine, measureReceive);

/**
 * How many deliveries a second each contestant answers, with so many connections that post all the
 * time, and what CPU time one takes in workerd. The Workers reach Postgres through the pooler, and
 * open a connection for each delivery; the Node server keeps its own, straight to Postgres.
 *
 * In rounds: a slice of each contestant, forth and back, so that the machine's moods are shared.
 */
import { setTimeout as pause } from "node:timers/promises";
import { type Bench, say } from "../bench.ts";
import { checkBooks } from "./books.ts";
import { cpuMs } from "./cpu.ts";
import { load, newTarget, slice, type Target } from "./load.ts";
import { startNodeServer } from "./node-process.ts";
import { type Bundles, PATH, SECRET, type Stage, withStage } from "./stage.ts";

const CONTESTANTS = ["ours", "textbook", "oneStatement", "bare", "verifyOnly"] as const;
export const RACER_NAMES = [...CONTESTANTS, "node"] as const;
export type Racer = (typeof RACER_NAMES)[number];

export const CONNECTIONS = [8, 32] as const;
export type Connections = (typeof CONNECTIONS)[number];

export interface Plan {
  readonly rounds: number;
  readonly warmUpSeconds: number;
  readonly seconds: number;
}

export interface Sample {
  readonly perSecond: number;
  /** Null where it is not known, and for the Node server. */
  readonly cpuMsPerDelivery: number | null;
}

/** By round. */
export type Race = Readonly<Record<Racer, Readonly<Record<Connections, readonly Sample[]>>>>;

/** @param route through the pooler. */
export async function race(
  bench: Bench,
  bundles: Bundles,
  route: (databaseUrl: string) => string,
  plan: Plan,
): Promise<Race> {
  const databases = new Map<string, string>();
  for (const name of RACER_NAMES)
    databases.set(name, await bench.database(`receive_${name.toLowerCase()}`));
  const databaseOf = (name: string): string => databases.get(name) ?? "";

  const entries = CONTESTANTS.map((contestant) => ({
    name: contestant.toLowerCase(),
    contestant,
    databaseUrl: route(databaseOf(contestant)),
  }));
  const server = await startNodeServer(databaseOf("node"), SECRET);
  try {
    return await withStage(bundles, entries, async (stage) => {
      const node = newTarget("node", new URL(PATH, server.url).href, SECRET);
      const targets = [...stage.targets, node];
      const samples = await runRounds(targets, stage, plan);
      for (const [index, name] of RACER_NAMES.entries()) {
        const target = targets[index];
        if (!target || name === "verifyOnly") continue;
        await checkBooks(databaseOf(name), target, name !== "bare");
      }
      return samples;
    });
  } finally {
    await server.stop();
  }
}

const COMPILE_SECONDS = 1.5;

const none = (): Record<Connections, Sample[]> => ({ 8: [], 32: [] });

async function runRounds(targets: readonly Target[], { pid }: Stage, plan: Plan): Promise<Race> {
  const samples = {
    ours: none(),
    textbook: none(),
    oneStatement: none(),
    bare: none(),
    verifyOnly: none(),
    node: none(),
  };
  // The more code one has, the longer V8 takes to compile it: all are to be seen with that behind them.
  for (const target of targets) await load(target, CONNECTIONS[0], COMPILE_SECONDS);
  for (let round = 0; round < plan.rounds; round++) {
    for (const connections of CONNECTIONS) {
      const order = [...RACER_NAMES.entries()];
      for (const [index, name] of round % 2 === 0 ? order : order.toReversed()) {
        const target = targets[index];
        // It bounds the others, and need not be known exactly.
        if (!target || (name === "verifyOnly" && round > 0)) continue;
        const sample = await runSlice(target, connections, name === "node" ? null : pid, plan);
        samples[name][connections].push(sample);
        say(`${connections} connections, ${name}: ${sample.perSecond.toFixed(0)} a second`);
      }
    }
  }
  return samples;
}

/** For the connections that are closed behind the answers. */
const SETTLE_MS = 150;

async function runSlice(
  target: Target,
  connections: number,
  pid: number | null,
  plan: Plan,
): Promise<Sample> {
  const cpu = (): number | null => (pid === null ? null : cpuMs(pid));
  let before: number | null = null;
  const { perSecond, deliveries } = await slice(target, connections, plan, () => {
    before = cpu();
  });
  await pause(SETTLE_MS);
  const after = cpu();
  const cpuMsPerDelivery = before === null || after === null ? null : (after - before) / deliveries;
  return { perSecond, cpuMsPerDelivery };
}

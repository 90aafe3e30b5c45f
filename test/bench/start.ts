/**
 * What a start of the Worker costs: the size of the bundle that is uploaded, and the CPU time that
 * the real workerd takes to come up with it, less what it takes with an empty Worker. So it counts
 * all that a new isolate does before its first request: to compile the bundle, to run its top level,
 * to load the parts of Node that it asks for.
 *
 * Not imitated: Cloudflare's processors, and what its own limit on start-up counts. CPU time is read
 * from Linux; elsewhere there is none.
 */
import { readFile, readdir } from "node:fs/promises";
import { setTimeout as pause } from "node:timers/promises";
import { gzipSync } from "node:zlib";
import { bundle, startWorkerd } from "../proof/stage/workerd.ts";
import { runBench } from "./bench.ts";
import { median, printTable } from "./figures.ts";
import { printMachine } from "./machine.ts";
import type { Result } from "./results.ts";

const STARTS = 7;
const MOST_KIBIBYTES = 200;
const MOST_MS = 50;
/** What workerd does when it is up has ended by then. */
const SETTLE_MS = 150;

const EMPTY = 'export default { fetch: () => new Response("") };';
/** A start asks nothing of the database. */
const NO_DATABASE = "postgres://postgres:postgres@127.0.0.1:9/none";

export async function measureStart(): Promise<readonly Result[]> {
  const script = await bundle("src/index.ts");
  const kibibytes = kibibytesOf(script);
  const withNeon = kibibytesOf(await bundle("src/index.ts", true));
  const size: Result = {
    what: "bundle, gzipped",
    goal: `under ${MOST_KIBIBYTES} KiB`,
    peers: "",
    floor: "",
    result: `${kibibytes.toFixed(1)} KiB; with Neon's driver ${withNeon.toFixed(1)} KiB`,
    holds: kibibytes < MOST_KIBIBYTES,
  };
  const goal = { what: "CPU of a start", goal: `under ${MOST_MS} ms`, peers: "" };
  if (process.platform !== "linux") {
    const result = "CPU time is read from Linux";
    return [size, { ...goal, floor: "", result, holds: null }];
  }

  const times = { empty: [] as number[], own: [] as number[] };
  for (let start = 0; start < STARTS; start++) {
    times.empty.push(await cpuOfStart(EMPTY));
    times.own.push(await cpuOfStart(script));
  }
  const [empty, own] = [median(times.empty), median(times.own)];
  printTable(
    [`CPU of workerd until it is up, ${STARTS} starts, in ms`, "median", "range"],
    [
      ["with an empty Worker", empty.toFixed(1), range(times.empty)],
      ["with this one", own.toFixed(1), range(times.own)],
    ],
  );
  const result = `${(own - empty).toFixed(0)} ms`;
  const floor = `workerd with an empty Worker: ${empty.toFixed(0)} ms`;
  return [size, { ...goal, floor, result, holds: own - empty < MOST_MS }];
}

function kibibytesOf(script: string): number {
  return gzipSync(script).length / 1024;
}

function range(times: readonly number[]): string {
  return `${Math.min(...times).toFixed(0)} to ${Math.max(...times).toFixed(0)}`;
}

/** In milliseconds; of all threads. */
async function cpuOfStart(script: string): Promise<number> {
  const vars = { STRIPE_WEBHOOK_SECRET: "whsec_start", STRIPE_LIVEMODE: "false" };
  const workerd = await startWorkerd([{ name: "start", script, databaseUrl: NO_DATABASE, vars }]);
  try {
    await pause(SETTLE_MS);
    return await cpuMs(workerd.pid());
  } finally {
    await workerd.stop();
  }
}

async function cpuMs(pid: number): Promise<number> {
  const threads = await readdir(`/proc/${pid}/task`);
  const times = await Promise.all(
    threads.map(async (thread) => {
      // Nanoseconds, where `stat` counts hundredths of a second.
      const text = await readFile(`/proc/${pid}/task/${thread}/schedstat`, "utf8");
      return Number(text.split(" ")[0]);
    }),
  );
  return times.reduce((sum, nanoseconds) => sum + nanoseconds, 0) / 1e6;
}

if (import.meta.main) {
  await runBench(printMachine, async () => {
    await measureStart();
  });
}

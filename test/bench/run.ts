/**
 * All measurements, one after the other on one throw-away cluster, and in the end one table of goals
 * and results: `npm run bench`.
 *
 * `--repeats` of the round trips, `--events` of the drain, `--deliveries` of the latency, `--rows` of
 * the large inbox. Each measurement is a program of its own, too.
 */
import { type Bench, type Extent, runBench, say } from "./bench.ts";
import { measureDrain } from "./drain/drain.ts";
import { measureGrowth } from "./growth/growth.ts";
import { measureLatency } from "./latency.ts";
import { printMachine } from "./machine.ts";
import { measureMemory } from "./memory/memory.ts";
import { measureReceive } from "./receive/receive.ts";
import { printResults, type Result } from "./results.ts";
import { measureRoundTrips } from "./round-trips.ts";
import { measureStart } from "./start.ts";

const MEASUREMENTS: Readonly<
  Record<string, (bench: Bench, extent: Extent) => Promise<readonly Result[]>>
> = {
  "round trips": measureRoundTrips,
  start: measureStart,
  receive: measureReceive,
  drain: measureDrain,
  latency: measureLatency,
  memory: measureMemory,
  growth: measureGrowth,
};

await runBench(printMachine, async (bench, extent) => {
  const results: Result[] = [];
  for (const [name, measure] of Object.entries(MEASUREMENTS)) {
    const startedAt = performance.now();
    results.push(...(await measure(bench, extent)));
    say(`${name}: ${((performance.now() - startedAt) / 1_000).toFixed(0)} s`);
  }
  printResults(results);
});

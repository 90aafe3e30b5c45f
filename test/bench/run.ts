/**
 * All measurements, one after the other on one throw-away cluster: `npm run bench`.
 *
 * `--delay` (ms each way) and `--repeats` of the round trips, `--events` of the drain,
 * `--deliveries` of the latency. Each measurement is a program of its own, too.
 */
import { runBench } from "./bench.ts";
import { measureDrain } from "./drain.ts";
import { measureLatency } from "./latency.ts";
import { printMachine } from "./machine.ts";
import { measureRoundTrips } from "./round-trips.ts";

await runBench(printMachine, measureRoundTrips, measureDrain, measureLatency);

/**
 * The parts of the proof. Each plays on a stage of its own, with a Postgres, a wire and a workerd
 * that no other part disturbs, so that they can run beside each other.
 */
import { CONTROL_WORKERS, proveControls } from "./controls/controls.ts";
import { type PathReport, proveCrashPoints, type Way, WAYS } from "./crash/crash-points.ts";
import { crashSection } from "./crash/crash-report.ts";
import { HOSTILE_WORKERS, proveHostileInput } from "./hostile/hostile.ts";
import { ORDER_WORKERS, proveOrders } from "./orders/orders.ts";
import { ALL_PATHS, fault, type Path, pathNamed, WORKERS } from "./crash/paths.ts";
import { proveRaces } from "./races/races.ts";
import type { Section } from "./report.ts";
import { proveSoak, SOAK_WORKERS } from "./soak/soak.ts";
import { delivery } from "./stage/deliveries.ts";
import { openStage, type Stage, type StageOptions } from "./stage/stage.ts";

export interface PartOptions {
  readonly seed: number;
  readonly soakSeconds: number;
  /** Ends the part, and whatever it has started. */
  readonly signal: AbortSignal;
  readonly say: (line: string) => void;
}

export interface Part {
  readonly name: string;
  /** @returns null when it needs what this machine has not. */
  readonly run: (options: PartOptions) => Promise<Section | null>;
}

const HISTORIES = 200;
const HISTORIES_POOLED = 80;
const GENERATED_INPUTS = 1_500;
/** Some half of the work, each. */
const RECEIVING = ALL_PATHS.filter(({ name }) => /^(sync|async)/.test(name));
const TICKING = ALL_PATHS.filter((path) => !RECEIVING.includes(path));
const CRASHES = { workers: WORKERS, fault } as const;
/**
 * Before a message is after the one before it, whichever side that came from, and in the middle of
 * it is before it; and what the Worker and Postgres do when they end is no different behind a pooler.
 */
const WAYS_POOLED = ["cut after", "terminate the backend"] as const;

/** Each is there with its conversation alone, statement by statement. */
const OVER_WEBSOCKETS = [
  "sync: new",
  "sync: duplicate",
  "sync: ignored",
  "sync: database refuses, failure recorded",
  "sync: driver refuses a write, failure recorded",
  "async: receive, process after the answer",
  "async: thin notification, what it names is fetched after the answer",
  "tick: processes a batch, one of it is ignored and one left alone",
  "tick: sweeps in what was never delivered",
  "sync: new, its message leaves behind the answer",
  "queue: message consumed",
].map(pathNamed);
/** What becomes of a backend, and of Postgres, is no different on another road. */
const WAYS_WEBSOCKET = ["cut after", "kill the Worker"] as const;

/** What runs in turn; the lanes run beside each other. */
export const LANES: readonly (readonly Part[])[] = [
  [
    onStage("crash-receive", CRASHES, (stage, { say }) =>
      crashPoints("Crash points, receiving", stage, RECEIVING, WAYS, say),
    ),
    onStage("crash-receive-pooled", { ...CRASHES, pooled: true }, (stage, { say }) =>
      crashPoints("Crash points, receiving", stage, RECEIVING, WAYS_POOLED, say),
    ),
  ],
  [
    onStage("crash-tick", CRASHES, (stage, { say }) =>
      crashPoints("Crash points, ticks and the queue", stage, TICKING, WAYS, say),
    ),
  ],
  [
    onStage("crash-websocket", { ...CRASHES, webSocket: true }, (stage, { say }) =>
      crashPoints("Crash points, through a WebSocket", stage, OVER_WEBSOCKETS, WAYS_WEBSOCKET, say),
    ),
    onStage("controls", { workers: CONTROL_WORKERS }, (stage) => proveControls(stage)),
    onStage("hostile", { workers: HOSTILE_WORKERS }, (stage, { seed }) =>
      proveHostileInput({ stage, seed, generated: GENERATED_INPUTS }),
    ),
    {
      name: "races",
      run: ({ say, signal }) =>
        proveRaces({
          lanes: 1,
          signal,
          onPair: ({ name, interleavings }) => say(`${name}, ${interleavings}`),
        }),
    },
    onStage("orders", { workers: ORDER_WORKERS }, (stage, { seed }) =>
      proveOrders({ stage, seed, runs: HISTORIES }),
    ),
    onStage("orders-pooled", { workers: ORDER_WORKERS, pooled: true }, (stage, { seed }) =>
      proveOrders({ stage, seed, runs: HISTORIES_POOLED }),
    ),
  ],
  [
    onStage("soak", { workers: SOAK_WORKERS }, (stage, { seed, soakSeconds, signal }) =>
      proveSoak({ stage, seed, seconds: soakSeconds / 2, signal }),
    ),
    onStage("soak-pooled", { workers: SOAK_WORKERS, pooled: true }, (stage, options) =>
      proveSoak({ ...options, stage, seconds: options.soakSeconds / 2 }),
    ),
    onStage("crash-tick-pooled", { ...CRASHES, pooled: true }, (stage, { say }) =>
      crashPoints("Crash points, ticks and the queue", stage, TICKING, WAYS_POOLED, say),
    ),
  ],
];

export const PARTS: readonly Part[] = LANES.flat();

function onStage(
  name: string,
  options: StageOptions,
  play: (stage: Stage, options: PartOptions) => Promise<Section>,
): Part {
  return {
    name,
    run: async (given) => {
      const stage = await openStage(options);
      if (stage === null) return null;
      const stop = onlyOnce(stage.stop);
      // What plays on it fails then, and whoever waits for that hears how the end failed.
      given.signal.addEventListener("abort", () => void stop().catch(() => undefined));
      try {
        given.signal.throwIfAborted();
        const section = await play(stage, given);
        return options.pooled
          ? { ...section, title: `${section.title}, through PgBouncer` }
          : section;
      } finally {
        await stop();
      }
    },
  };
}

function onlyOnce<T>(work: () => Promise<T>): () => Promise<T> {
  let done: Promise<T> | undefined;
  return () => (done ??= work());
}

/**
 * Behind a pooler that keeps no account of names, a Worker prepares nothing more after its first
 * trouble with one. Here it has that, by deliveries that share a server; else it would have it in the
 * midst of some path, whose conversation would be another one the next time.
 */
async function meetNames(stage: Stage): Promise<void> {
  for (const worker of Object.keys(WORKERS)) {
    for (const n of [1, 2, 3])
      await stage.deliver(delivery({ worker, type: "customer.updated", n }));
  }
}

async function crashPoints(
  title: string,
  stage: Stage,
  paths: readonly Path[],
  ways: readonly Way[],
  say: (line: string) => void,
): Promise<Section> {
  if (stage.pooled) await meetNames(stage);
  const reports: PathReport[] = [];
  const idle = new Set<string>();
  for (const [index, path] of paths.entries()) {
    // To the driver, a half of a message is none: that is tried on one path, as it is for all.
    const halves = index === 0;
    const report = await proveCrashPoints(stage, path, { ways, idle, halves });
    reports.push(report);
    say(`${index + 1} of ${paths.length}: ${path.name}, ${report.runs} runs`);
  }
  return crashSection(title, reports);
}

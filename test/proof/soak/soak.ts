/**
 * A soak: load without a pause, while the wire is cut, sessions are ended, Postgres crashes and the
 * Worker is killed; Stripe delivers again, the cron ticks, nights pass. In the end nothing waits,
 * the books are what an independent fold of the events says, and no connection is left.
 */
import { setTimeout as pause } from "node:timers/promises";
import { count } from "../../local/deliver.ts";
import { Random } from "../../local/random.ts";
import { type Disturbances, disturb } from "./disturber.ts";
import type { Section } from "../report.ts";
import { unexplained } from "./log.ts";
import { passNight } from "./nights.ts";
import { soakSection } from "./report.ts";
import { sendWave, type Wave, WAVE_KINDS } from "./waves.ts";
import { comeToRest, every, type Rest, type Sample, sample } from "./watch.ts";
import type { Stage } from "../stage/stage.ts";
import type { Failure } from "../workers/receiver.ts";

export interface SoakOptions {
  readonly stage: Stage;
  /** How long the load and the disturbances go on; then everything is given the time to settle. */
  readonly seconds: number;
  readonly seed: number;
  readonly signal?: AbortSignal;
}

export interface Soak {
  readonly seconds: number;
  readonly seed: number;
  readonly waves: readonly Wave[];
  readonly disturbances: Disturbances;
  readonly ticks: number;
  readonly nights: number;
  readonly samples: readonly Sample[];
  readonly rest: Rest;
  /** How often the Worker logged an error that nothing explains, by what it said. */
  readonly unexplained: ReadonlyMap<string, number>;
}

const WORKER = "soak";

/** What the stage of a soak must have. */
export const SOAK_WORKERS = {
  [WORKER]: {
    entry: "test/proof/workers/receiver.ts",
    // A minute of Stripe and the cron in a few seconds: who died is waited for no longer than that.
    vars: {
      LEASE_SECONDS: "4",
      STATEMENT_TIMEOUT_MS: "1500",
      LOCK_TIMEOUT_MS: "1000",
      BACKOFF_CAP_SECONDS: "5",
      TICK_BUDGET_SECONDS: "4",
      CONCURRENCY: "3",
    },
  },
} as const;

/** Waves at a time, and deliveries at a time in each: little enough to run beside other things. */
const SENDERS = 2;
const CONCURRENCY = 2;
/** Shorter than a tick may take, so that ticks overlap. */
const TICK_EVERY_MS = 2_000;
const NIGHT_EVERY_MS = 6_000;
/** Many leases and back-offs. */
const SETTLE_WITHIN_MS = 60_000;
const POLL_MS = 250;

export async function proveSoak(options: SoakOptions): Promise<Section> {
  return soakSection(options.stage, await playSoak(options));
}

/** Plays it, until everything is settled or can't be. */
export async function playSoak({ stage, seconds, seed, signal }: SoakOptions): Promise<Soak> {
  await stage.clear();
  const oddities = new Map<string, number>();
  const planned = new Map<string, Failure["how"]>();
  stage.hearLog((line) => {
    const odd = unexplained(line, planned);
    if (odd !== null) count(oddities, odd);
  });

  const failed = new AbortController();
  const given = signal ? AbortSignal.any([signal, failed.signal]) : failed.signal;
  const stop = AbortSignal.any([given, AbortSignal.timeout(seconds * 1000)]);
  const waves: Wave[] = [];
  let n = 0;
  const send = async (): Promise<void> => {
    while (!stop.aborted) {
      n += 1;
      const kind = WAVE_KINDS[n % WAVE_KINDS.length] ?? "sync";
      const options = {
        kind,
        seed: seed + n,
        n,
        worker: WORKER,
        concurrency: CONCURRENCY,
        onTrouble: (eventId: string, { how }: Failure) => void planned.set(eventId, how),
      };
      waves.push(await sendWave(stage, { ...options, signal: given }));
    }
  };
  const settled = new AbortController();
  const ticks: Promise<void>[] = [];
  let nights = 0;
  const beside = Promise.all([
    sample(stage, settled.signal),
    every(TICK_EVERY_MS, settled.signal, () => void ticks.push(stage.tick(WORKER))),
    every(NIGHT_EVERY_MS, settled.signal, async () => {
      if (await passNight(stage, WORKER)) nights += 1;
    }),
  ]);

  const disturbing = disturb(stage, new Random(seed), stop);
  try {
    await together(failed, [disturbing, ...Array.from({ length: SENDERS }, send)]);
    await settle(stage);
  } finally {
    settled.abort();
    await Promise.allSettled([beside, ...ticks]);
  }
  const [samples] = await beside;
  return {
    seconds,
    seed,
    waves,
    disturbances: await disturbing,
    ticks: ticks.length,
    nights,
    samples,
    rest: await comeToRest(stage),
    unexplained: oddities,
  };
}

/** All of them to their end; when one fails, the others are given up. */
async function together(failed: AbortController, all: readonly Promise<unknown>[]): Promise<void> {
  const ending = all.map((one) =>
    one.catch((error: unknown) => {
      failed.abort(error);
      throw error;
    }),
  );
  await Promise.allSettled(ending);
  failed.signal.throwIfAborted();
}

/** Until nothing waits: leases and back-offs end, and ticks take what is left. */
async function settle(stage: Stage): Promise<void> {
  for (let left = SETTLE_WITHIN_MS / POLL_MS; left > 0; left -= 1) {
    const waiting = await stage.rows(
      "select 1 from webhook_inbox where processed_at is null and parked_at is null limit 1",
    );
    if (waiting.length === 0) return;
    await pause(POLL_MS);
  }
}

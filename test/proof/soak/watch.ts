/** What a soak takes of the machine: sessions of Postgres, and workerd's memory. */
import { setTimeout as pause } from "node:timers/promises";
import { SESSIONS } from "./disturber.ts";
import type { Stage } from "../stage/stage.ts";

export interface Sample {
  readonly backends: number;
  /** Null where it cannot be told. */
  readonly residentBytes: number | null;
}

export interface Rest {
  /** Sessions of the database; idle ones of the pooler, if there is one. */
  readonly backends: number;
  /** Sessions that should have ended: with a pooler, those that have something to do. */
  readonly busy: number;
  /** Whether the Worker closed every connection that it had opened. */
  readonly closed: boolean;
}

const SAMPLE_EVERY_MS = 1_000;
/** More than the Worker gives a connection to close, and what goes on behind an answer. */
const REST_WITHIN_MS = 25_000;
const POLL_MS = 100;

export async function sample(stage: Stage, stop: AbortSignal): Promise<readonly Sample[]> {
  const samples: Sample[] = [];
  await every(SAMPLE_EVERY_MS, stop, async () => {
    const backends = await countSessions(stage, "true").catch(() => null);
    // Postgres is away just now.
    if (backends === null) return;
    samples.push({ backends, residentBytes: await stage.workerd.residentBytes() });
  });
  return samples;
}

/** Waits, but not for ever, until nobody has anything to do with the database. */
export async function comeToRest(stage: Stage): Promise<Rest> {
  const which = stage.pooled ? "state <> 'idle'" : "true";
  let busy = await countSessions(stage, which);
  for (let left = REST_WITHIN_MS / POLL_MS; busy > 0 && left > 0; left -= 1) {
    await pause(POLL_MS);
    busy = await countSessions(stage, which);
  }
  const backends = await countSessions(stage, "true");
  const closed = await Promise.race([
    stage.quiet().then(() => true),
    pause(REST_WITHIN_MS, false, { ref: false }),
  ]);
  return { backends, busy, closed };
}

/** Each so many milliseconds, one after the other, until `stop`. */
export async function every(
  ms: number,
  stop: AbortSignal,
  step: () => Promise<unknown> | void,
): Promise<void> {
  while (!stop.aborted) {
    await pause(ms, undefined, { signal: stop }).catch(() => null);
    if (!stop.aborted) await step();
  }
}

async function countSessions(stage: Stage, which: string): Promise<number> {
  const [row] = await stage.rows(`select count(*)::int as sessions ${SESSIONS} and ${which}`);
  return Number(row?.["sessions"]);
}

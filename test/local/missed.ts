/**
 * Deliveries that never come, as when an endpoint was misrouted: Stripe knows of the events, and
 * the receiver's sweep has to find them.
 */
import { execFile } from "node:child_process";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { promisify } from "node:util";
import { Client } from "pg";
import { callTick } from "./cron.ts";
import type { Random } from "./random.ts";
import { type Receiver, ROOT } from "./run-file.ts";
import type { Sent } from "./stream.ts";

/** What was dropped for good, and what the sweep brought in. */
export interface Missed {
  /** Deliveries of events that the receiver has something to do with. */
  readonly dropped: number;
  readonly found: number;
}

const POLL_MS = 250;
const PATIENCE_MS = 60_000;
const EVENTS_IN_ONE_POST = 500;
const DAY_MS = 86_400_000;

/** The events of a stream that never reach the endpoint, by endpoint and id. */
export function chooseDropped(
  stream: readonly Sent[],
  random: Random,
  percent: number,
): ReadonlySet<string> {
  return new Set(stream.map(keyOf).filter(() => random.chance(percent)));
}

export function keyOf({ endpoint, event }: Sent): string {
  return `${endpoint} ${event.id}`;
}

/** Lets the fake Stripe API list what has happened. */
export async function publish(
  apiUrl: string,
  stream: readonly Sent[],
  signal?: AbortSignal,
): Promise<void> {
  const events = [...new Map(stream.map(({ event }) => [event.id, event])).values()];
  for (let begin = 0; begin < events.length; begin += EVENTS_IN_ONE_POST) {
    const response = await fetch(`${apiUrl}/simulation`, {
      method: "POST",
      body: JSON.stringify(events.slice(begin, begin + EVENTS_IN_ONE_POST)),
      ...(signal ? { signal } : {}),
    });
    await response.body?.cancel();
    if (!response.ok) throw new Error(`The fake Stripe API answers ${response.status}.`);
  }
}

/**
 * Has the receiver swept, as an operator would, and waits for the end of it.
 *
 * @returns how many of the dropped events it found.
 */
export async function sweepUp(
  { url, databaseUrl }: Pick<Receiver, "url" | "databaseUrl">,
  dropped: ReadonlySet<string>,
  signal?: AbortSignal,
): Promise<number> {
  const since = new Date(Date.now() - 30 * DAY_MS).toISOString().slice(0, 10);
  const program = join(ROOT, "src", "cli", "sweep.ts");
  const env = { ...process.env, DATABASE_URL: databaseUrl };
  await promisify(execFile)(process.execPath, [program, "--since", since], { env });

  const client = new Client({
    connectionString: databaseUrl,
    application_name: "simulated stripe",
  });
  await client.connect();
  try {
    const endsAt = Date.now() + PATIENCE_MS;
    for (;;) {
      await callTick(url, signal);
      const { rowCount } = await client.query("select from sweep_runs where completed_at is null");
      if (rowCount === 0 || Date.now() > endsAt) break;
      await pause(POLL_MS, undefined, signal ? { signal } : {});
    }
    const { rowCount } = await client.query(
      "select from sweep_gaps where endpoint || ' ' || event_id = any($1)",
      [[...dropped]],
    );
    return rowCount ?? 0;
  } finally {
    await client.end();
  }
}

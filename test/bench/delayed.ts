/**
 * A Worker whose database is far away: a proxy between them delays every message, and tells when the
 * newest connection was opened and its first statement left.
 *
 * What a path takes longer with the delay than without it, divided by the delay of one round trip,
 * is its number of round trips; the time of the machine itself cancels out.
 *
 * Not imitated: a narrow line, lost packets, TLS. Times are those of `performance.now()`.
 */
import { setTimeout as pause } from "node:timers/promises";
import { type Message, startProxy } from "../local/proxy.ts";
import { type Bench, type BenchWorker, withClient } from "./bench.ts";
import { median } from "./figures.ts";
import type { Client } from "pg";

/** A Worker that is far from its database, and a connection to it that is not. */
export interface Place {
  readonly worker: BenchWorker;
  readonly client: Client;
  /** Each way, from now on. */
  readonly setDelay: (ms: number) => void;
  /** When the Worker's newest connection was opened, and its first statement left. */
  readonly seen: { readonly opened: number; readonly firstStatement: number };
}

export async function onDelayedWorker<T>(
  bench: Bench,
  name: string,
  settings: Readonly<Record<string, string>>,
  use: (place: Place) => Promise<T>,
  withWorker = bench.withWorker,
): Promise<T> {
  const databaseUrl = await bench.database(name);
  let delayMs = 0;
  const setDelay = (ms: number): void => {
    delayMs = ms;
  };
  const seen = { connection: 0, opened: 0, firstStatement: 0 };
  const observe = ({ connection, from, type }: Message): "pass" => {
    if (from === "server") return "pass";
    // The proxy asks when the delay is over; the message left before it.
    const leftAt = performance.now() - delayMs;
    if (type === "startup") Object.assign(seen, { connection, opened: leftAt, firstStatement: 0 });
    const isStatement = type === "Q" || type === "P";
    if (isStatement && connection === seen.connection) seen.firstStatement ||= leftAt;
    return "pass";
  };
  const proxy = await startProxy(databaseUrl, {
    get delayMs() {
      return delayMs;
    },
    fate: observe,
  });
  try {
    return await withClient(databaseUrl, (client) =>
      withWorker(proxy.route(databaseUrl), settings, (worker) =>
        use({ worker, client, setDelay, seen }),
      ),
    );
  } finally {
    await proxy.close();
  }
}

const GIVE_UP_MS = 15_000;

/** Until the Worker has closed its connections, and so has done what it does behind an answer. */
export async function untilQuiet(client: Client): Promise<void> {
  const deadline = Date.now() + GIVE_UP_MS;
  for (;;) {
    const { rowCount } = await client.query(
      `select from pg_stat_activity
       where datname = current_database() and application_name = 'stripe-inbox'`,
    );
    if (rowCount === 0) return;
    if (Date.now() > deadline) throw new Error("The Worker keeps its connections.");
    await pause(2);
  }
}

/** The same thing measured with and without the delay. */
export interface Pair {
  readonly plainMs: number[];
  readonly delayedMs: number[];
}

export function newPair(): Pair {
  return { plainMs: [], delayedMs: [] };
}

/**
 * @param delayMs each way.
 * @param typical what stands for all repeats.
 */
export function roundTrips(
  { plainMs, delayedMs }: Pair,
  delayMs: number,
  typical: (ms: readonly number[]) => number = median,
): number {
  return (typical(delayedMs) - typical(plainMs)) / (2 * delayMs);
}

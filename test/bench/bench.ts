/**
 * What every measurement stands on: a Postgres of its own, thrown away at the end, and the real
 * Worker in workerd before a database of it. Everything runs on this one machine and shares its
 * cores, so figures are to be compared within one run, never between machines.
 *
 * Not imitated: Hyperdrive, a database that is far away (but see the delay proxy), other isolates.
 */
import { createDatabase, createTemplate } from "../local/databases.ts";
import type { Endpoint } from "../local/deliver.ts";
import { UsageError } from "../local/flags.ts";
import { freePort } from "../local/ports.ts";
import type { Cluster } from "../local/postgres.ts";
import { claimRun } from "../local/run-file.ts";
import { startTemporaryCluster } from "../local/temporary-cluster.ts";
import { startWebSocketBridge } from "../local/websocket-bridge.ts";
import { startWorker } from "../local/worker.ts";
import { bundle, startWorkerd } from "../proof/stage/workerd.ts";
import { type Extent, readExtent } from "./extent.ts";
import { Client } from "pg";

export type { Extent } from "./extent.ts";

export interface Bench {
  readonly cluster: Pick<Cluster, "url">;
  /** A new database with the newest migrations, or a copy of another one. */
  readonly database: (name: string, template?: string) => Promise<string>;
  readonly withWorker: WithWorker;
  /** The same, to whose database a WebSocket leads; it has no queue. */
  readonly withWebSocketWorker: WithWorker;
}

type WithWorker = <T>(
  databaseUrl: string,
  settings: Readonly<Record<string, string>>,
  use: (worker: BenchWorker) => Promise<T>,
) => Promise<T>;

export interface BenchWorker {
  readonly door: Endpoint;
  /** Calls the scheduled route, as the Cron Trigger does every minute, and waits for its end. */
  readonly tick: () => Promise<void>;
}

/** Runs measurements from the command line: figures go to stdout, all else to stderr. */
export async function runBench(
  ...measurements: ((bench: Bench, extent: Extent) => Promise<unknown>)[]
): Promise<void> {
  await withExtent((extent) =>
    withBench(async (bench) => {
      for (const measure of measurements) await measure(bench, extent);
    }),
  );
}

/** Reads the command line, and says what is wrong with it. */
export async function withExtent(use: (extent: Extent) => Promise<void>): Promise<void> {
  try {
    await use(readExtent());
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    say(error.message);
    process.exitCode = 2;
  }
}

export async function withClient<T>(
  databaseUrl: string,
  use: (client: Client) => Promise<T>,
): Promise<T> {
  const client = new Client({ connectionString: databaseUrl, application_name: "bench" });
  await client.connect();
  try {
    return await use(client);
  } finally {
    await client.end();
  }
}

export function say(line: string): void {
  console.error(line);
}

async function withBench(use: (bench: Bench) => Promise<void>): Promise<void> {
  const run = await claimRun(say);
  try {
    const cluster = await startTemporaryCluster();
    try {
      const migrated = await createTemplate(cluster);
      await use({
        cluster,
        database: (name, template = migrated) => createDatabase(cluster, name, template),
        withWorker: async (databaseUrl, settings, useWorker) => {
          const worker = await startWorker({
            databaseUrl,
            settings: { ...WORKER_SETTINGS, ...settings },
            preferredPort: await freePort(),
            run,
            signal: new AbortController().signal,
            say,
          });
          try {
            const url = `${worker.url}/webhooks/stripe/billing`;
            return await useWorker({ door: { url, secret: SECRET }, tick: () => tick(worker.url) });
          } finally {
            await worker.stop();
          }
        },
        withWebSocketWorker,
      });
    } finally {
      await cluster.stop();
    }
  } finally {
    run.remove();
  }
}

const SECRET = "whsec_bench";
/** All else is as shipped. The events of a benchmark are of Stripe's test mode. */
const WORKER_SETTINGS = { STRIPE_WEBHOOK_SECRET: SECRET, STRIPE_LIVEMODE: "false" };

async function withWebSocketWorker<T>(
  databaseUrl: string,
  settings: Readonly<Record<string, string>>,
  use: (worker: BenchWorker) => Promise<T>,
): Promise<T> {
  const name = "bench";
  const bridge = await startWebSocketBridge();
  try {
    const script = await bundle("src/index.ts", true);
    const vars = { ...WORKER_SETTINGS, ...settings };
    const workerd = await startWorkerd([
      { name, script, databaseUrl, webSocketProxy: bridge.url, vars },
    ]);
    try {
      const url = new URL("/webhooks/stripe/billing", await workerd.url(name)).href;
      const tickOnce = (): Promise<void> => workerd.scheduled(name, "* * * * *");
      return await use({ door: { url, secret: SECRET }, tick: tickOnce });
    } finally {
      await workerd.stop();
    }
  } finally {
    await bridge.close();
  }
}

async function tick(workerUrl: string): Promise<void> {
  const cron = encodeURIComponent("* * * * *");
  const response = await fetch(`${workerUrl}/cdn-cgi/handler/scheduled?cron=${cron}`);
  const text = await response.text();
  if (!response.ok) throw new Error(`The tick was answered with ${response.status}: ${text}`);
}

/**
 * The whole system on this machine: Postgres, the newest migrations, the Worker. Started in this
 * order, ended in the reverse one, whatever happens in between.
 */
import { join, relative } from "node:path";
import { migrateDatabase, MigrationFailed } from "../../src/db/migrate.ts";
import { ensureDatabase } from "./databases.ts";
import { UsageError } from "./flags.ts";
import { findInstallation } from "./postgres-binaries.ts";
import { startCluster } from "./postgres.ts";
import { LOCAL, ROOT, type Receiver, claimRun } from "./run-file.ts";
import { accountOf } from "./settings.ts";
import { type FakeStripeApi, sometimes, startStripeApi } from "./stripe-api.ts";
import { billingUrl, webhookEndpoint } from "./stripe-endpoints.ts";
import { WORKER_LOG, startWorker } from "./worker.ts";

export interface System {
  readonly receiver: Receiver;
  /** Whether the database is this project's own, and may be ill-treated. */
  readonly ownsDatabase: boolean;
  /** Resolves with what happened when a part of it ends without being told to. */
  readonly broken: Promise<string>;
  readonly stop: () => Promise<void>;
}

export interface SystemOptions {
  /** Vars and secrets of the Worker, by name. */
  readonly settings: Readonly<Record<string, string>>;
  /** Ends the start, too. */
  readonly signal: AbortSignal;
  readonly say: (line: string) => void;
}

const DATABASE = "stripe_inbox";
/** The one that `wrangler.toml` names, for `npx wrangler dev`. */
const POSTGRES_PORT = 54_329;
const WORKER_PORT = 8_787;
/** Of the calls to the fake Stripe API. */
const FAULTS_PERCENT = 20;

export async function startSystem({ settings, signal, say }: SystemOptions): Promise<System> {
  const run = await claimRun(say);
  const endings: (() => Promise<void> | void)[] = [() => run.remove()];
  const stop = async () => {
    const failures: unknown[] = [];
    for (let end = endings.pop(); end; end = endings.pop()) {
      try {
        await end();
      } catch (error) {
        failures.push(error);
      }
    }
    if (failures.length > 0) throw failures[0];
  };

  try {
    const broken: Promise<string>[] = [];
    const given = process.env["DATABASE_URL"];
    const databaseUrl = given || (await startOwnPostgres());
    await migrateDatabase(databaseUrl).catch((error: unknown) => {
      if (error instanceof MigrationFailed) throw new UsageError(error.message);
      throw given ? new UsageError(`DATABASE_URL cannot be used: ${rootCause(error)}`) : error;
    });
    say(`Postgres is ready: ${withoutPassword(databaseUrl)}`);
    signal.throwIfAborted();

    const api = await startFakeApi();
    const apiUrl = api?.url ?? null;
    const preferredPort = Number(process.env["PORT"] ?? WORKER_PORT);
    const worker = await startWorker({
      databaseUrl,
      settings: apiUrl === null ? settings : { ...settings, ...apiSettings(apiUrl) },
      preferredPort,
      run,
      signal,
      say,
    });
    endings.push(() => worker.stop());
    // As if it had been told to Stripe, so that the doctor finds there what it looks for.
    if (api) api.lists.endpoints = [webhookEndpoint(billingUrl(worker.url))];
    broken.push(worker.ended.then(() => `The Worker ended by itself (log: ${WORKER_LOG}).`));
    const mode = settings["RECEIVE_MODE"] ?? "sync";
    say(`The Worker is ready: ${worker.url} (mode ${mode}; log: ${relative(ROOT, WORKER_LOG)})`);

    const sweeps = Number(settings["SWEEP_INTERVAL_MINUTES"] ?? 60) > 0;
    const receiver = { url: worker.url, databaseUrl, apiUrl, sweeps, ...accountOf(settings) };
    run.serve(receiver);
    return { receiver, ownsDatabase: !given, broken: Promise.race(broken), stop };

    /** Unless the Worker is to call another one. */
    async function startFakeApi(): Promise<FakeStripeApi | null> {
      if (settings["STRIPE_API_KEY"]?.trim()) return null;
      const fake = await startStripeApi({ fault: sometimes(Math.random, FAULTS_PERCENT) });
      endings.push(() => fake.close());
      return fake;
    }

    async function startOwnPostgres(): Promise<string> {
      const { home } = await findInstallation();
      const cluster = await startCluster({
        dataDir: join(home, "postgres"),
        preferredPort: POSTGRES_PORT,
        durable: true,
        signal,
        say,
      });
      endings.push(() => cluster.stop());
      broken.push(cluster.ended.then(() => "Postgres ended by itself."));
      if (home !== LOCAL) say(`Its data is in ${home}, since only root may enter this folder.`);
      return ensureDatabase(cluster, DATABASE);
    }
  } catch (error) {
    await stop();
    throw error;
  }
}

function apiSettings(apiUrl: string): Record<string, string> {
  return { STRIPE_API_KEY: "sk_test_made_up_for_this_machine", STRIPE_API_URL: apiUrl };
}

function rootCause(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause === undefined ? error.message : rootCause(error.cause);
}

/** A connection string as it may be shown. */
export function withoutPassword(databaseUrl: string): string {
  const url = URL.parse(databaseUrl);
  if (!url) return "the database of DATABASE_URL";
  url.password = "";
  url.search = "";
  return url.href;
}

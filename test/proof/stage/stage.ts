/**
 * Where a proof is played: a Postgres of its own, the wire before it, and Workers in workerd whose
 * every word to the database passes that wire; with a transaction pooler in between if wanted.
 */
import { Client } from "pg";
import { createDatabase, createTemplate } from "../../local/databases.ts";
import { type Answer, type Endpoint, post } from "../../local/deliver.ts";
import type { StripeEvent } from "../../local/events.ts";
import { startPgBouncer } from "../../local/pgbouncer.ts";
import { startProxy } from "../../local/proxy.ts";
import { startTemporaryCluster } from "../../local/temporary-cluster.ts";
import { startWebSocketBridge } from "../../local/websocket-bridge.ts";
import { type Books, readBooks, type Row, statementsFor } from "./books.ts";
import { type ApiOptions, startStripeApi } from "../../local/stripe-api.ts";
import { startQueue } from "./queue.ts";
import { Wire } from "./wire.ts";
import { bundle, startWorkerd, type Workerd } from "./workerd.ts";

/** One event on its way to one endpoint of one Worker. */
export interface Delivery {
  readonly worker: string;
  readonly endpoint: string;
  readonly event: StripeEvent;
}

export interface Stage {
  readonly wire: Wire;
  readonly workerd: Workerd;
  /** Whether a transaction pooler is between the wire and Postgres. */
  readonly pooled: boolean;
  /** Rows of one statement, past the wire. */
  readonly rows: (text: string, values?: unknown[]) => Promise<Record<string, unknown>[]>;
  /** Who gets each line that a Worker logs from now on, in the place of whoever got it before. */
  readonly hearLog: (listener: (line: string) => void) => void;
  /** Where a Worker's endpoint is now; another place once the Worker was killed. */
  readonly endpoint: (worker: string, name: string) => Promise<Endpoint>;
  /** One attempt; status 0 when nobody answered. */
  readonly deliver: (delivery: Delivery) => Promise<Answer>;
  /** Lets Stripe's list of events hold it. */
  readonly happened: (event: StripeEvent) => void;
  /** One tick, to its end or the Worker's. */
  readonly tick: (worker: string) => Promise<void>;
  /** The nightly tick. */
  readonly retain: (worker: string) => Promise<void>;
  /**
   * One delivery of the message that waits longest in the queue; whether it was acknowledged, and so
   * never comes again. Null: none waits.
   */
  readonly consume: (worker: string) => Promise<boolean | null>;
  /** Returns once nobody but this stage has anything to do with the database. */
  readonly quiet: () => Promise<void>;
  readonly books: () => Promise<Books>;
  /** Empties every table. */
  readonly clear: () => Promise<void>;
  /** Keeps what the tables hold now; `restore` brings it back. */
  readonly keep: () => Promise<void>;
  readonly restore: () => Promise<void>;
  /** Ends every session of the database but this stage's, and waits until they have ended. */
  readonly terminateBackends: () => Promise<void>;
  /** Crashes Postgres; returns when it is there again. */
  readonly restartPostgres: () => Promise<void>;
  readonly stop: () => Promise<void>;
}

export interface StageOptions {
  /** The Workers, by name: their entry files, and settings over those that every Worker has. */
  readonly workers: Readonly<
    Record<
      string,
      {
        readonly entry: string;
        readonly vars?: Readonly<Record<string, string>>;
        /** Whether its messages leave. */
        readonly sends?: true;
        /** Whether it goes through a WebSocket; by default, as all do. */
        readonly webSocket?: boolean;
      }
    >
  >;
  /** How the fake Stripe API fails. */
  readonly fault?: ApiOptions["fault"];
  readonly pooled?: boolean;
  /** Whether all Workers go through a WebSocket, and the wire is behind its bridge. */
  readonly webSocket?: boolean;
  readonly onLog?: (line: string) => void;
}

const DATABASE = "proof";
const SECRET = "whsec_proof";
const CONNECT_SECRET = "whsec_proof_connect";
/** Beside the tables: what the fake Stripe API did, each time, and which messages left. */
export const CALLS_IN_EFFECT = "calls in effect";
export const MESSAGES_IN_THE_QUEUE = "messages in the queue";
const POLLS_UNTIL_GIVING_UP = 20_000;

/** @returns null when a pooler is wanted and there is none on this machine. */
export async function openStage(options: StageOptions): Promise<Stage | null> {
  const endings: (() => Promise<unknown>)[] = [];
  const stop = async (): Promise<void> => {
    const failures: unknown[] = [];
    for (let end = endings.pop(); end; end = endings.pop()) {
      await end().catch((error: unknown) => failures.push(error));
    }
    if (failures.length > 0) throw failures[0];
  };
  try {
    const cluster = await startTemporaryCluster();
    endings.push(cluster.stop);
    const databaseUrl = await createDatabase(cluster, DATABASE, await createTemplate(cluster));
    const pooler = options.pooled ? await startPgBouncer(databaseUrl) : undefined;
    if (pooler === null) {
      await stop();
      return null;
    }
    if (pooler) endings.push(pooler.stop);
    const wire = new Wire();
    const before = pooler ? atPort(databaseUrl, pooler.port) : databaseUrl;
    const proxy = await startProxy(before, { fate: wire.fate });
    endings.push(proxy.close);

    const bridge = await startWebSocketBridge();
    endings.push(bridge.close);
    const api = await startStripeApi(options.fault ? { fault: options.fault } : {});
    endings.push(api.close);
    const queue = await startQueue();
    endings.push(queue.close);
    const scripts = new Map<string, Promise<string>>();
    const roads = Object.values(options.workers).map(({ webSocket }) => webSocket);
    const neon = [options.webSocket, ...roads].includes(true);
    const workers = Object.entries(options.workers).map(
      async ([name, { entry, vars, sends, webSocket }]) => {
        const script = scripts.get(entry) ?? bundle(entry, neon);
        scripts.set(entry, script);
        return {
          name,
          script: await script,
          databaseUrl: proxy.route(databaseUrl),
          ...((webSocket ?? options.webSocket) ? { webSocketProxy: bridge.url } : {}),
          vars: {
            ...VARS,
            STRIPE_API_URL: api.url,
            ...(sends ? { QUEUE_URL: queue.url } : {}),
            ...vars,
          },
        };
      },
    );
    let { onLog = () => undefined } = options;
    const workerd = await startWorkerd(await Promise.all(workers), (line) => onLog(line));
    endings.push(workerd.stop);

    const own = await connectTo(databaseUrl);
    endings.push(() => own.client.end());
    await own.client.query("create table effects (event_id text not null)");
    const statements = await statementsFor(own.client);

    const others =
      "from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()";
    const untilNone = async (which: string, values: unknown[] = []): Promise<void> => {
      for (let polls = 0; polls < POLLS_UNTIL_GIVING_UP; polls++) {
        const { rows } = await own.client.query(`select ${others} and ${which}`, values);
        if (rows.length === 0) return;
      }
      throw new Error("The database does not come to rest.");
    };
    let restarting = Promise.resolve();
    const terminateBackends = async (): Promise<void> => {
      const { rows } = await own.client.query(`select pid, pg_terminate_backend(pid) ${others}`);
      // A pooler opens others in their place.
      await untilNone("pid = any($1)", [rows.map(({ pid }) => Number(pid))]);
    };
    const endpoint = async (worker: string, name: string): Promise<Endpoint> => ({
      url: new URL(`/webhooks/stripe/${name}`, await workerd.url(worker)).href,
      secret: name === "connect" ? CONNECT_SECRET : SECRET,
    });
    return {
      wire,
      workerd,
      pooled: pooler !== undefined,
      rows: async (text, values = []) => (await own.client.query(text, values)).rows,
      hearLog: (listener) => {
        onLog = listener;
      },
      endpoint,
      deliver: async ({ worker, endpoint: name, event }) =>
        post(await endpoint(worker, name), JSON.stringify(event)),
      tick: (worker) => workerd.scheduled(worker, "* * * * *").catch(() => undefined),
      retain: (worker) => workerd.scheduled(worker, "night").catch(() => undefined),
      consume: (worker) =>
        queue.deliver((body) =>
          workerd.consume(worker, "stripe-inbox-outbox", body).catch(() => false),
        ),
      quiet: async () => {
        await proxy.idle();
        await restarting;
        await untilNone(pooler ? "state <> 'idle'" : "true");
        // A session that the pooler keeps may not have read yet what it was sent last.
        if (pooler) await terminateBackends();
      },
      books: async () => {
        const beside: [string, readonly Row[]][] = [
          [CALLS_IN_EFFECT, api.told.map((telling) => ({ ...telling }))],
          [MESSAGES_IN_THE_QUEUE, queue.reached()],
        ];
        const books = await readBooks(own.client, statements);
        return new Map([...books, ...beside.filter(([, rows]) => rows.length > 0)]);
      },
      happened: (event) => api.lists.addEvent(event),
      clear: async () => {
        api.reset();
        api.lists.clear();
        queue.clear();
        await own.client.query(statements.clear);
      },
      keep: async () => {
        queue.keep();
        await own.client.query(statements.keep);
      },
      restore: async () => {
        api.reset();
        queue.restore();
        await own.client.query(statements.restore);
      },
      terminateBackends,
      restartPostgres: async () => {
        restarting = cluster.restart().then(own.reconnect);
        await restarting;
      },
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

const VARS = {
  STRIPE_WEBHOOK_SECRET: SECRET,
  STRIPE_CONNECT_WEBHOOK_SECRET: CONNECT_SECRET,
  STRIPE_LIVEMODE: "false",
  STRIPE_API_KEY: "sk_test_proof",
  // What is delivered late here was not missed.
  SWEEP_INTERVAL_MINUTES: "0",
  // One after the other, so that a tick's conversation is the same each time.
  CONCURRENCY: "1",
};

function atPort(databaseUrl: string, port: number): string {
  const url = new URL(databaseUrl);
  url.port = String(port);
  return url.href;
}

async function connectTo(connectionString: string) {
  const open = async (): Promise<Client> => {
    const client = new Client({ connectionString, application_name: "proof" });
    client.on("error", () => undefined);
    await client.connect();
    return client;
  };
  let client = await open();
  return {
    get client() {
      return client;
    },
    reconnect: async () => {
      client = await open();
    },
  };
}

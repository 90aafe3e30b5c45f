/**
 * Where the contestants run: each a Worker of one workerd process, bundled as for a deploy, with
 * nothing in front of it, and before a database of its own. Not imitated: Hyperdrive (PgBouncer
 * stands for it), Cloudflare's logs, other isolates that want the same cores.
 */
import { startPgBouncer } from "../../local/pgbouncer.ts";
import { bundle, startWorkerd } from "../../proof/stage/workerd.ts";
import { newTarget, type Target } from "./load.ts";

const WORKERS = "test/bench/receive/workers";
const ENTRIES = {
  ours: "src/index.ts",
  textbook: `${WORKERS}/textbook.ts`,
  oneStatement: `${WORKERS}/one-statement.ts`,
  bare: `${WORKERS}/bare.ts`,
  connectOnly: `${WORKERS}/connect-only.ts`,
  verifyOnly: `${WORKERS}/verify-only.ts`,
} as const;

export type Contestant = keyof typeof ENTRIES;
export type Bundles = Readonly<Record<Contestant, string>>;

export interface Entry {
  /** Of its Worker, and of its events' ids. */
  readonly name: string;
  readonly contestant: Contestant;
  readonly databaseUrl: string;
}

export interface Stage {
  readonly targets: readonly Target[];
  /** Of workerd. */
  readonly pid: number;
}

export const SECRET = "whsec_bench";
export const PATH = "/webhooks/stripe/billing";

/** Of the pooler, for each database; Postgres takes 200 in all. */
const SERVER_CONNECTIONS = 20;

export async function bundleAll(): Promise<Bundles> {
  return {
    ours: await bundle(ENTRIES.ours),
    textbook: await bundle(ENTRIES.textbook),
    oneStatement: await bundle(ENTRIES.oneStatement),
    bare: await bundle(ENTRIES.bare),
    connectOnly: await bundle(ENTRIES.connectOnly),
    verifyOnly: await bundle(ENTRIES.verifyOnly),
  };
}

/** The targets come in the order of the entries. */
export async function withStage<T>(
  bundles: Bundles,
  entries: readonly Entry[],
  use: (stage: Stage) => Promise<T>,
): Promise<T> {
  const workerd = await startWorkerd(
    entries.map(({ name, contestant, databaseUrl }) => ({
      name,
      script: bundles[contestant],
      databaseUrl,
      vars: { STRIPE_WEBHOOK_SECRET: SECRET, STRIPE_LIVEMODE: "false" },
    })),
  );
  try {
    const targets: Target[] = [];
    for (const { name } of entries) {
      targets.push(newTarget(name, new URL(PATH, await workerd.url(name)).href, SECRET));
    }
    return await use({ targets, pid: workerd.pid() });
  } finally {
    await workerd.stop();
  }
}

/**
 * @param postgresUrl of any database of the server.
 * @returns null where no PgBouncer is installed.
 */
export async function withPooler<T>(
  postgresUrl: string,
  use: (route: (databaseUrl: string) => string, version: string) => Promise<T>,
): Promise<T | null> {
  const pooler = await startPgBouncer(postgresUrl, SERVER_CONNECTIONS);
  if (pooler === null) return null;
  try {
    return await use((databaseUrl) => {
      const url = new URL(databaseUrl);
      url.port = String(pooler.port);
      return url.href;
    }, pooler.version);
  } finally {
    await pooler.stop();
  }
}

/**
 * Workers in the real workerd, bundled by wrangler as for a deploy, in one process that can be
 * killed and comes back: what Cloudflare does to an isolate, at the moment of one's choice.
 */
import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { promisify } from "node:util";
import { convertV4MiniflareOptions, Miniflare, NoOpLog } from "miniflare";
import { unstable_readConfig as readConfig } from "wrangler";
import { listProcesses } from "../../local/processes.ts";
import { ROOT } from "../../local/run-file.ts";

const LOOKS_FOR_WORKERD = 500;

export interface WorkerSetup {
  readonly name: string;
  /** The bundle, as `bundle` makes it. */
  readonly script: string;
  readonly databaseUrl: string;
  /** Where the database is reached through a WebSocket of this proxy, and no Hyperdrive is bound. */
  readonly webSocketProxy?: string;
  /** Vars and secrets. */
  readonly vars: Readonly<Record<string, string>>;
}

export interface Workerd {
  /** Where a Worker answers; another place after each revival. */
  readonly url: (worker: string) => Promise<string>;
  /** One run of the Worker's `scheduled` handler, to its end; rejects when workerd dies with it. */
  readonly scheduled: (worker: string, cron: string) => Promise<void>;
  /** One message for the Worker's `queue` handler; whether it was acknowledged. */
  readonly consume: (worker: string, queue: string, body: unknown) => Promise<boolean>;
  /** Ends the process at once, with everything in it. */
  readonly kill: () => Promise<void>;
  /** Returns when, after a kill, it is there again. */
  readonly revived: () => Promise<void>;
  /** What the process takes of the machine's memory now. Linux only, else null. */
  readonly residentBytes: () => Promise<number | null>;
  readonly pid: () => number;
  readonly stop: () => Promise<void>;
}

/** The driver that wrangler.toml leaves out, in its own place. */
const WITH_NEON = `@neondatabase/serverless:${join(ROOT, "node_modules/@neondatabase/serverless/index.mjs")}`;

/**
 * One module of everything that the entry imports.
 *
 * @param neon whether Neon's driver is among it, as a deployment without Hyperdrive has it.
 */
export async function bundle(entry: string, neon = false): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "stripe-inbox-proof-"));
  try {
    const wrangler = createRequire(import.meta.url).resolve("wrangler/package.json");
    const script = join(wrangler, "../bin/wrangler.js");
    await promisify(execFile)(
      process.execPath,
      [
        script,
        "deploy",
        join(ROOT, entry),
        "--dry-run",
        "--env=",
        "--minify",
        `--outdir=${folder}`,
        ...(neon ? ["--alias", WITH_NEON] : []),
      ],
      {
        cwd: ROOT,
        env: { ...process.env, WRANGLER_SEND_METRICS: "false", WRANGLER_WRITE_LOGS: "false" },
      },
    );
    const name = entry.replace(/^.*\//, "").replace(/\.tsx?$/, ".js");
    return await readFile(join(folder, name), "utf8");
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** @param onLog gets each line that a Worker logs. */
export async function startWorkerd(
  workers: readonly WorkerSetup[],
  onLog: (line: string) => void = () => undefined,
): Promise<Workerd> {
  const { compatibility_date, compatibility_flags } = readConfig(
    { config: join(ROOT, "wrangler.toml") },
    { hideWarnings: true },
  );
  let restarted = Promise.withResolvers<void>();
  const options = {
    ...convertV4MiniflareOptions({
      log: new FailureLog((error) => restarted.reject(error)),
      workers: workers.map(({ name, script, databaseUrl, webSocketProxy, vars }) => ({
        name,
        modules: [{ type: "ESModule", path: `${name}.js`, contents: script }],
        ...(compatibility_date ? { compatibilityDate: compatibility_date } : {}),
        compatibilityFlags: compatibility_flags,
        ...(webSocketProxy === undefined
          ? { bindings: { ...vars }, hyperdrives: { HYPERDRIVE: databaseUrl } }
          : {
              bindings: { ...vars, DATABASE_URL: databaseUrl, NEON_WS_PROXY: webSocketProxy },
            }),
        unsafeDirectSockets: [{ host: "127.0.0.1", port: 0 }],
      })),
    }),
    handleStructuredLogs: ({ message }: { message: string }) => onLog(message),
    // It comes back by itself.
    unsafeHandleRuntimeRestart: () => restarted.resolve(),
  };
  const before = new Set(workerds());
  const start = async (): Promise<Miniflare> => {
    const started = deafToSignals(() => new Miniflare(options));
    await started.ready;
    return started;
  };
  let miniflare = await start();
  // Other stages' are known; one that was killed here is gone, and its number may come again.
  const findNew = async (): Promise<number> => {
    for (let looks = 0; looks < LOOKS_FOR_WORKERD; looks++) {
      const pid = workerds().find((candidate) => !before.has(candidate));
      if (pid !== undefined) return pid;
      // Between its fork and its exec, it has another name.
      await pause(10);
    }
    throw new Error("workerd does not run.");
  };
  let pid = await findNew();

  return {
    url: async (worker) => String(await miniflare.unsafeGetDirectURL(worker)),
    scheduled: async (worker, cron) => {
      const fetcher = await miniflare.getWorker(worker);
      const { outcome } = await fetcher.scheduled({ cron });
      if (outcome !== "ok") throw new Error(`The tick ended as ${outcome}.`);
    },
    consume: async (worker, queue, body) => {
      const fetcher = await miniflare.getWorker(worker);
      const message = { id: "1", timestamp: new Date(), body, attempts: 1 };
      const end = await fetcher.queue(queue, [message]);
      if (end.explicitAcks.includes(message.id)) return true;
      // Who says nothing has acknowledged.
      const retried = end.retryBatch.retry || end.retryMessages.length > 0;
      return end.outcome === "ok" && !retried;
    },
    kill: () => {
      restarted = Promise.withResolvers();
      restarted.promise.catch(() => undefined);
      return killAndWait(pid);
    },
    revived: async () => {
      await restarted.promise.catch(async () => {
        // It comes back at its own ports, of which somebody else may have taken one meanwhile.
        await miniflare.dispose();
        miniflare = await start();
      });
      pid = await findNew();
    },
    residentBytes: () => residentBytes(pid),
    pid: () => pid,
    stop: () => miniflare.dispose(),
  };
}

/** Says nothing, and hears of a restart that failed. */
class FailureLog extends NoOpLog {
  readonly #failed: (error: Error) => void;

  constructor(failed: (error: Error) => void) {
    super();
    this.#failed = failed;
  }

  override error(error: Error): void {
    this.#failed(error);
  }
}

/**
 * Miniflare ends this process as soon as a signal comes, and whatever else had to end before it
 * would be left behind.
 */
function deafToSignals<T>(make: () => T): T {
  const signals = ["SIGINT", "SIGTERM"] as const;
  const before = new Map(signals.map((name) => [name, process.listeners(name)]));
  const made = make();
  for (const name of signals) {
    for (const listener of process.listeners(name)) {
      if (!before.get(name)?.includes(listener)) process.off(name, listener);
    }
  }
  return made;
}

function workerds(): number[] {
  return listProcesses()
    .filter(({ parent, command }) => parent === process.pid && command.includes("workerd"))
    .map(({ pid }) => pid);
}

async function killAndWait(workerd: number): Promise<void> {
  process.kill(workerd, "SIGKILL");
  while (exists(workerd)) await pause(1);
}

function exists(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

async function residentBytes(pid: number): Promise<number | null> {
  const status = await readFile(`/proc/${pid}/status`, "utf8").catch(() => "");
  const kibibytes = /^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1];
  return kibibytes === undefined ? null : Number(kibibytes) * 1024;
}

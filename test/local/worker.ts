/**
 * The real Worker on this machine: `wrangler dev`, with a database and settings, from the moment
 * its door answers until nothing of it is left, workerd included.
 */
import { spawn } from "node:child_process";
import { closeSync, openSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { stripVTControlCharacters } from "node:util";
import { LOOPBACK, choosePort, freePort } from "./ports.ts";
import { LOCAL, ROOT, type RunFile, endChild } from "./run-file.ts";
import { withLocalDatabase } from "./wrangler-config.ts";

export interface Worker {
  readonly url: string;
  /** Resolves when it has ended, whoever ended it. */
  readonly ended: Promise<void>;
  readonly stop: () => Promise<void>;
}

export interface WorkerOptions {
  readonly databaseUrl: string;
  /** Vars and secrets of the Worker, by name. */
  readonly settings: Readonly<Record<string, string>>;
  readonly preferredPort: number;
  readonly run: RunFile;
  readonly signal: AbortSignal;
  readonly say: (line: string) => void;
}

/** What the Worker and wrangler write. */
export const WORKER_LOG = join(LOCAL, "worker.log");
const SETTINGS_FILE = join(LOCAL, "worker.env");
const START_TIMEOUT_MS = 90_000;
const POLL_MS = 100;

/** Starts the Worker and waits until it answers. */
export async function startWorker(options: WorkerOptions): Promise<Worker> {
  const { databaseUrl, settings, preferredPort, run, signal, say } = options;
  const port = await choosePort(preferredPort);
  if (port !== preferredPort) say(`Port ${preferredPort} is taken, so the Worker gets ${port}.`);
  // In a file, because command lines are there for every user of the machine to read.
  writeFileSync(SETTINGS_FILE, envFile(settings), { mode: 0o600 });

  const wrangler = createRequire(import.meta.url).resolve("wrangler/package.json");
  const flags = {
    ip: LOOPBACK,
    port,
    // Otherwise two Workers on one machine quarrel about 9229.
    "inspector-port": await freePort(),
    "env-file": SETTINGS_FILE,
    "persist-to": join(LOCAL, "wrangler"),
    "show-interactive-dev-session": false,
  };
  const log = openSync(WORKER_LOG, "w");
  const child = spawn(
    process.execPath,
    [
      join(wrangler, "../bin/wrangler.js"),
      "dev",
      "--local",
      `--config=${configFile()}`,
      ...Object.entries(flags).map(([name, value]) => `--${name}=${value}`),
    ],
    {
      cwd: ROOT,
      stdio: ["ignore", log, log],
      // In a process group of its own: Ctrl-C in the terminal is ours to act on, in our order.
      detached: true,
      env: {
        ...process.env,
        CLOUDFLARE_HYPERDRIVE_LOCAL_CONNECTION_STRING_HYPERDRIVE: withPassword(databaseUrl),
        CLOUDFLARE_CF_FETCH_ENABLED: "false",
        CLOUDFLARE_LOAD_DEV_VARS_FROM_DOT_ENV: "true",
        FORCE_COLOR: "0",
        WRANGLER_HIDE_BANNER: "true",
        WRANGLER_WRITE_LOGS: "false",
        WRANGLER_REGISTRY_PATH: join(LOCAL, "wrangler-registry"),
        WRANGLER_SEND_ERROR_REPORTS: "false",
        WRANGLER_SEND_METRICS: "false",
      },
    },
  );
  closeSync(log);
  let hasEnded = false;
  const ended = new Promise<void>((resolve) => {
    const end = () => {
      hasEnded = true;
      resolve();
    };
    child.once("exit", end);
    child.once("error", end);
  });
  const { pid } = child;
  const mark = join(ROOT, "node_modules");
  if (pid !== undefined) run.addChild("Worker", pid, mark);
  const stop = async () => {
    if (pid !== undefined) await endChild({ pid, mark });
    await ended;
    rmSync(SETTINGS_FILE, { force: true });
  };

  const url = `http://${LOOPBACK}:${port}`;
  try {
    const deadline = Date.now() + START_TIMEOUT_MS;
    while (!(await answers(`${url}/healthz`))) {
      signal.throwIfAborted();
      if (hasEnded || Date.now() > deadline) {
        throw new Error(`The Worker did not start (log: ${WORKER_LOG}):\n${logTail()}`);
      }
      await Promise.race([pause(POLL_MS), ended]);
    }
  } catch (error) {
    await stop();
    throw error;
  }
  return { url, ended, stop };
}

function configFile(): string {
  const file = join(ROOT, "wrangler.toml");
  const text = withLocalDatabase(readFileSync(file, "utf8"));
  if (text === null) return file;
  const here = join(LOCAL, "wrangler.toml");
  writeFileSync(here, text);
  return here;
}

/** wrangler insists on a password, also where Postgres asks for none. */
function withPassword(databaseUrl: string): string {
  const url = URL.parse(databaseUrl);
  if (!url || url.password !== "") return databaseUrl;
  url.password = "none";
  return url.href;
}

/** The last lines of the log. They hold no settings: wrangler hides the values of an env file. */
export function logTail(lines = 12): string {
  const text = stripVTControlCharacters(readFileSync(WORKER_LOG, "utf8"));
  return text.trim().split("\n").slice(-lines).join("\n");
}

async function answers(url: string): Promise<boolean> {
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(2_000) });
    await response.body?.cancel();
    return response.ok;
  } catch {
    return false;
  }
}

/** The settings as an env file, in which a value stands for exactly itself. */
function envFile(settings: Readonly<Record<string, string>>): string {
  return Object.entries(settings)
    .map(([name, value]) => {
      const quote = ["'", '"', "`"].find((candidate) => !value.includes(candidate));
      if (quote === undefined || (quote === '"' && value.includes("\\"))) {
        throw new Error(`${name} holds characters that cannot be passed on`);
      }
      return `${name}=${quote}${value.replaceAll("$", "\\$")}${quote}\n`;
    })
    .join("");
}

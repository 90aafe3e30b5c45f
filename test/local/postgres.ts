/**
 * A PostgreSQL of this project's own: a cluster in a folder, reachable from this machine only,
 * that ends with whoever started it, or else is ended by the next one who uses the folder.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import {
  chownSync,
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { Client } from "pg";
import { LOOPBACK, choosePort } from "./ports.ts";
import { type Installation, findInstallation } from "./postgres-binaries.ts";
import { endProcesses, listProcesses } from "./processes.ts";

export interface Cluster {
  readonly port: number;
  /** The connection string of one of its databases. */
  readonly url: (database: string) => string;
  /** Resolves when the server has ended, whoever ended it. */
  readonly ended: Promise<void>;
  /** Ends the server; its data stays. */
  readonly stop: () => Promise<void>;
  /** Ends it at once, as a crash does: nobody is told, and the next start recovers from the log. */
  readonly crash: () => Promise<void>;
}

export interface ClusterOptions {
  /** Made when it does not exist. */
  readonly dataDir: string;
  /** Another one is taken when this is not free; 0 takes any. */
  readonly preferredPort: number;
  /**
   * False gives up safety from power cuts for speed; what was committed still survives the end of
   * the server's own processes.
   */
  readonly durable: boolean;
  readonly signal?: AbortSignal;
  readonly say?: (line: string) => void;
}

const SUPERUSER = "postgres";
const MAX_CONNECTIONS = 200;
const START_TIMEOUT_MS = 60_000;
const POLL_MS = 50;

/** Starts the cluster in `dataDir`, and ends one first that a killed run had left there. */
export async function startCluster(options: ClusterOptions): Promise<Cluster> {
  const { dataDir, preferredPort, signal, say = () => undefined } = options;
  const installation = withOwner(await findInstallation(), dataDir);
  signal?.throwIfAborted();
  if (await endLeftover(dataDir)) say("Ended the Postgres that a killed run had left behind.");
  if (!existsSync(dataDir)) {
    say("Making a new Postgres database cluster.");
    await initialise(installation, dataDir, signal);
  }
  const port = await choosePort(preferredPort);
  if (preferredPort !== 0 && port !== preferredPort) {
    say(`Port ${preferredPort} is taken, so Postgres listens on port ${port}.`);
  }
  return launch(installation, port, options);
}

async function initialise(
  { initdb, user }: Installation,
  dataDir: string,
  signal?: AbortSignal,
): Promise<void> {
  // Made aside and moved when complete, so that an interrupted one is never taken for a cluster.
  const partial = `${dataDir}.partial`;
  rmSync(partial, { recursive: true, force: true });
  mkdirSync(partial, { recursive: true, mode: 0o700 });
  if ("uid" in user) chownSync(partial, user.uid, user.gid);
  const flags = ["--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync", "--no-instructions"];
  const child = spawn(initdb, [`--pgdata=${partial}`, `--username=${SUPERUSER}`, ...flags], {
    ...user,
    cwd: dirname(initdb),
    env: plainEnvironment(),
    stdio: ["ignore", "ignore", "pipe"],
    detached: true,
    ...(signal ? { signal } : {}),
  });
  let errors = "";
  child.stderr?.on("data", (chunk) => (errors += String(chunk)));
  const [code] = await once(child, "close");
  if (code !== 0) throw new Error(`Postgres could not make its data folder:\n${errors.trim()}`);
  renameSync(partial, dataDir);
}

async function launch(
  { postgres, user }: Installation,
  port: number,
  { dataDir, durable, signal }: ClusterOptions,
): Promise<Cluster> {
  const settings = {
    listen_addresses: LOOPBACK,
    max_connections: String(MAX_CONNECTIONS),
    unix_socket_directories: "",
    ...(durable ? {} : { fsync: "off", full_page_writes: "off" }),
  };
  const flags = Object.entries(settings).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
  const logFile = `${dataDir}.log`;
  const log = openSync(logFile, "w");
  // In a process group of its own: Ctrl-C in the terminal must not end it before the Worker.
  const child = spawn(postgres, ["-D", dataDir, "-p", String(port), ...flags], {
    ...user,
    cwd: dirname(postgres),
    env: plainEnvironment(),
    stdio: ["ignore", log, log],
    detached: true,
  });
  closeSync(log);
  const ended = new Promise<void>((resolve) => {
    child.once("exit", () => resolve());
    child.once("error", () => resolve());
  });
  const end = async (how: NodeJS.Signals) => {
    if (isRunning(child)) await endProcesses(({ pid }) => pid === child.pid, how);
    await ended;
  };
  const stop = () => end("SIGINT");
  const crash = () => end("SIGQUIT");
  const url = (database: string) =>
    `postgres://${SUPERUSER}:${SUPERUSER}@${LOOPBACK}:${port}/${database}`;

  try {
    const deadline = Date.now() + START_TIMEOUT_MS;
    while (!(await answers(url("postgres")))) {
      signal?.throwIfAborted();
      if (!isRunning(child) || Date.now() > deadline) {
        const tail = readFileSync(logFile, "utf8").trim().split("\n").slice(-8).join("\n");
        throw new Error(`Postgres did not start (log: ${logFile}):\n${tail}`);
      }
      await Promise.race([pause(POLL_MS), ended]);
    }
  } catch (error) {
    await stop();
    throw error;
  }
  return { port, url, ended, stop, crash };
}

function isRunning(child: ChildProcess): boolean {
  return child.pid !== undefined && child.exitCode === null && child.signalCode === null;
}

async function answers(connectionString: string): Promise<boolean> {
  const client = new Client({ connectionString, connectionTimeoutMillis: 2_000 });
  client.on("error", () => undefined);
  try {
    await client.connect();
    return true;
  } catch {
    return false;
  } finally {
    await client.end().catch(() => undefined);
  }
}

/**
 * Ends the server that still runs on this folder. Its lock file names a process; only if the
 * command line of that process names this folder is it the server, and not a later process
 * under the same id, on account of which Postgres would refuse to start.
 */
async function endLeftover(dataDir: string): Promise<boolean> {
  const lockFile = join(dataDir, "postmaster.pid");
  if (!existsSync(lockFile)) return false;
  const pid = Number.parseInt(readFileSync(lockFile, "utf8"), 10);
  const isServer = (candidate: { pid: number; command: string }) =>
    candidate.pid === pid && candidate.command.includes(`-D ${dataDir} `);
  const found = listProcesses().some(isServer);
  if (found) await endProcesses(isServer, "SIGINT");
  rmSync(lockFile, { force: true });
  return found;
}

/** Data belongs to the user who made it, and Postgres runs as no other. */
function withOwner(installation: Installation, dataDir: string): Installation {
  if (!("uid" in installation.user) || !existsSync(dataDir)) return installation;
  const { uid, gid } = statSync(dataDir);
  return { ...installation, user: { uid, gid } };
}

/** Without the settings of another Postgres, and in a language that is always there. */
function plainEnvironment(): NodeJS.ProcessEnv {
  const others = Object.entries(process.env).filter(([name]) => !/^(PG|LC_|LANG)/.test(name));
  return { ...Object.fromEntries(others), LC_ALL: "C" };
}

/**
 * PgBouncer in transaction mode: the stand-in for Hyperdrive's pooling, where it is installed.
 * It hands a server connection out for one transaction, as Hyperdrive does. It imitates neither
 * Hyperdrive's query cache nor its protocol checks, nor the way to another region.
 */
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { accessSync, chmodSync, constants, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { Client } from "pg";
import { freePort, LOOPBACK } from "./ports.ts";

export interface Pooler {
  readonly port: number;
  /** Such as `PgBouncer 1.18.0`; from 1.21 on, it shares prepared statements, as Hyperdrive does. */
  readonly version: string;
  readonly stop: () => Promise<void>;
}

/** Few, so that sharing them is what is tested. */
const SERVER_CONNECTIONS = 5;
const SERVER_LOGIN_RETRY_SECONDS = 0.1;
const START_TIMEOUT_MS = 10_000;

/**
 * @param serverConnections for each database.
 * @returns null where no PgBouncer is installed.
 */
export async function startPgBouncer(
  postgresUrl: string,
  serverConnections = SERVER_CONNECTIONS,
): Promise<Pooler | null> {
  const program = findProgram("pgbouncer");
  if (program === null) return null;

  const port = await freePort();
  const folder = mkdtempSync(join(tmpdir(), "pgbouncer-"));
  chmodSync(folder, 0o755);
  const file = join(folder, "pgbouncer.ini");
  writeFileSync(file, configuration(new URL(postgresUrl), port, serverConnections), {
    mode: 0o644,
  });
  const child = spawn(program, ["-q", file], { stdio: "ignore" });
  const ended = once(child, "exit");

  const stop = async (): Promise<void> => {
    child.kill("SIGINT");
    await ended;
    rmSync(folder, { recursive: true, force: true });
  };
  try {
    await waitUntilReady(`postgres://postgres@${LOOPBACK}:${port}/postgres`);
  } catch (error) {
    await stop();
    throw error;
  }
  return { port, version: versionOf(program), stop };
}

function versionOf(program: string): string {
  return execFileSync(program, ["--version"], { encoding: "utf8" }).split("\n")[0] ?? "PgBouncer";
}

function configuration(server: URL, port: number, serverConnections: number): string {
  const settings = {
    listen_addr: LOOPBACK,
    listen_port: port,
    unix_socket_dir: "",
    pool_mode: "transaction",
    default_pool_size: serverConnections,
    max_client_conn: 500,
    // By default it refuses everybody for 15 s after Postgres could not be reached once: an outage
    // would be told by the pooler's patience, and not by its own length.
    server_login_retry: SERVER_LOGIN_RETRY_SECONDS,
    auth_type: "any",
    // It refuses to run as root, and changes to this user itself.
    ...(process.getuid?.() === 0 ? { user: "postgres" } : {}),
  };
  const lines = Object.entries(settings).map(([name, value]) => `${name} = ${value}`);
  const database = `* = host=${server.hostname} port=${server.port} user=${server.username}`;
  return ["[databases]", database, "[pgbouncer]", ...lines, ""].join("\n");
}

async function waitUntilReady(url: string): Promise<void> {
  const deadline = Date.now() + START_TIMEOUT_MS;
  for (;;) {
    const client = new Client({ connectionString: url });
    try {
      await client.connect();
      return await client.end();
    } catch (error) {
      if (Date.now() > deadline) throw new Error("PgBouncer does not start.", { cause: error });
      await pause(50);
    }
  }
}

/** Debian keeps it where a user's PATH may not look. */
function findProgram(name: string): string | null {
  const folders = [...(process.env["PATH"] ?? "").split(delimiter), "/usr/sbin"];
  return folders.map((folder) => join(folder, name)).find(isProgram) ?? null;
}

function isProgram(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/**
 * A throw-away cluster for tests: fast, empty, on a port of its own, gone when stopped. Those of
 * test runs that were killed are found and removed by the next one.
 */
import { mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import * as v from "valibot";
import { findInstallation } from "./postgres-binaries.ts";
import { type Cluster, startCluster } from "./postgres.ts";
import { ProcessId, endProcesses, identify, isAlive } from "./processes.ts";

export interface TemporaryCluster extends Pick<Cluster, "port" | "url"> {
  /** Ends the server and removes its data. */
  readonly stop: () => Promise<void>;
  /** Crashes it, and starts it again on the same port. */
  readonly restart: () => Promise<void>;
}

export async function startTemporaryCluster(): Promise<TemporaryCluster> {
  const { home } = await findInstallation();
  const all = join(home, "temporary");
  mkdirSync(all, { recursive: true });
  await removeAbandoned(all);

  const own = join(all, `${process.pid}-${crypto.randomUUID().slice(0, 8)}`);
  mkdirSync(own, { mode: 0o711 });
  writeFileSync(join(own, "owner.json"), JSON.stringify(identify(process.pid)));
  const dataDir = join(own, "data");
  let cluster = await startCluster({ dataDir, preferredPort: 0, durable: false });
  return {
    port: cluster.port,
    url: cluster.url,
    restart: async () => {
      await cluster.crash();
      cluster = await startCluster({ dataDir, preferredPort: cluster.port, durable: false });
    },
    stop: async () => {
      await cluster.stop();
      rmSync(own, { recursive: true, force: true });
    },
  };
}

async function removeAbandoned(all: string): Promise<void> {
  for (const name of readdirSync(all)) {
    const folder = join(all, name);
    if (isOwned(folder)) continue;
    await endProcesses(({ command }) => command.includes(`-D ${join(folder, "data")} `), "SIGINT");
    rmSync(folder, { recursive: true, force: true });
  }
}

function isOwned(folder: string): boolean {
  try {
    const owner: unknown = JSON.parse(readFileSync(join(folder, "owner.json"), "utf8"));
    return isAlive(v.parse(ProcessId, owner));
  } catch {
    return false;
  }
}

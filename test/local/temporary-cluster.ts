/**
 * A throw-away cluster for tests: fast, empty, on a port of its own, gone when stopped. Those of
 * test runs that were killed are found and removed by the next one.
 */
import { mkdirSync, readFileSync, readdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
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

  const name = `${process.pid}-${crypto.randomUUID().slice(0, 8)}`;
  const own = join(all, name);
  // Made aside: one without an owner would be taken for abandoned by whoever starts beside us.
  const unowned = join(home, `${name}.new`);
  mkdirSync(unowned, { mode: 0o711 });
  writeFileSync(join(unowned, "owner.json"), JSON.stringify(identify(process.pid)));
  renameSync(unowned, own);
  const dataDir = join(own, "data");
  const start = (preferredPort: number): Promise<Cluster> =>
    startCluster({ dataDir, preferredPort, durable: false });
  const { port, url, ...first } = await start(0);
  let running: Promise<Pick<Cluster, "crash" | "stop">> = Promise.resolve(first);
  let stopped = false;
  return {
    port,
    url,
    restart: async () => {
      if (stopped) throw new Error("The cluster has been stopped.");
      running = running.then(async ({ crash }) => {
        await crash();
        const again = await start(port);
        if (again.port !== port) throw new Error(`Port ${port} was taken in the meantime.`);
        return again;
      });
      await running;
    },
    stop: async () => {
      stopped = true;
      await (await running).stop();
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

/**
 * A delivery when the database is far away: every message between here and there takes its time.
 * The textbook Node server has its connections open already; the Worker opens one each time, once
 * to a pooler beside it that is far from Postgres (as Hyperdrive is), and once to one that is far
 * from the Worker, too. Not imitated: TLS, lost packets, a narrow line.
 */
import { startProxy } from "../../local/proxy.ts";
import { type Bench, say } from "../bench.ts";
import { median } from "../figures.ts";
import { checkBooks } from "./books.ts";
import { newTarget, slice } from "./load.ts";
import { startNodeServer } from "./node-process.ts";
import { type Bundles, PATH, SECRET, withPooler, withStage } from "./stage.ts";

export const PLACE_NAMES = ["ours", "oursFarPooler", "bare", "node"] as const;
export type PlaceName = (typeof PLACE_NAMES)[number];

export interface Far {
  /** Each way. */
  readonly delayMs: number;
  readonly p50Ms: Readonly<Record<PlaceName, number>>;
}

const DELAYS_MS = [10, 40] as const;
/** Few, since waiting is what is measured, and not work. */
const CONNECTIONS = 4;
/** The warm-up opens the connections of whoever keeps them. */
const TIME = { warmUpSeconds: 1, seconds: 4 } as const;

/** @param nearPostgres through a pooler beside Postgres. */
export async function measureFar(
  bench: Bench,
  bundles: Bundles,
  nearPostgres: (databaseUrl: string) => string,
): Promise<readonly Far[]> {
  const all: Far[] = [];
  // The proxy delays a connection as it was asked to when that was opened.
  for (const delayMs of DELAYS_MS) all.push(await measureAt(delayMs, bench, bundles, nearPostgres));
  return all;
}

async function measureAt(
  delayMs: number,
  bench: Bench,
  bundles: Bundles,
  nearPostgres: (databaseUrl: string) => string,
): Promise<Far> {
  const url = {
    ours: await bench.database(`far_${delayMs}_ours`),
    oursFarPooler: await bench.database(`far_${delayMs}_ours_far_pooler`),
    bare: await bench.database(`far_${delayMs}_bare`),
    node: await bench.database(`far_${delayMs}_node`),
  };
  await using toPostgres = await startProxy(url.ours, { delayMs });
  await using toPooler = await startProxy(nearPostgres(url.oursFarPooler), { delayMs });
  const node = await startNodeServer(toPostgres.route(url.node), SECRET);
  const p50Ms = { ours: Number.NaN, oursFarPooler: Number.NaN, bare: Number.NaN, node: Number.NaN };
  try {
    await withPooler(toPostgres.route(url.ours), (nearWorker) =>
      withStage(
        bundles,
        [
          { name: "ours", contestant: "ours", databaseUrl: nearWorker(url.ours) },
          { name: "ourstoo", contestant: "ours", databaseUrl: toPooler.route(url.oursFarPooler) },
          { name: "bare", contestant: "bare", databaseUrl: nearWorker(url.bare) },
        ],
        async ({ targets }) => {
          const all = [...targets, newTarget("node", new URL(PATH, node.url).href, SECRET)];
          for (const [index, name] of PLACE_NAMES.entries()) {
            const target = all[index];
            if (!target) throw new Error("Bug! A place has no target.");
            p50Ms[name] = median((await slice(target, CONNECTIONS, TIME)).latenciesMs);
            await checkBooks(url[name], target, name !== "bare");
            say(`${delayMs} ms each way, ${name}: p50 ${p50Ms[name].toFixed(0)} ms`);
          }
        },
      ),
    );
  } finally {
    await node.stop();
  }
  return { delayMs, p50Ms };
}

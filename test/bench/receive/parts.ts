/**
 * Where the time of one delivery goes: p50s at one connection of contestants of which each does a
 * part more than the last, straight to Postgres and through the pooler. Differences between them
 * are the parts.
 */
import type { Bench } from "../bench.ts";
import { median, printTable } from "../figures.ts";
import { slice } from "./load.ts";
import { type Bundles, type Contestant, type Entry, withStage } from "./stage.ts";

const PARTS = [
  ["verifyOnly", "verify, answer"],
  ["connectOnly", "… and connect"],
  ["bare", "… and insert the event (bare Worker)"],
  ["oneStatement", "… with all effects in that statement"],
  ["ours", "ours, all of it"],
] as const satisfies readonly (readonly [Contestant, string])[];

const TIME = { warmUpSeconds: 0.5, seconds: 1 } as const;

export async function printParts(
  bench: Bench,
  bundles: Bundles,
  route: (databaseUrl: string) => string,
): Promise<void> {
  const entries: Entry[] = [];
  for (const [contestant] of PARTS) {
    const name = contestant.toLowerCase();
    const databaseUrl = await bench.database(`parts_${name}`);
    entries.push(
      { name: `${name}direct`, contestant, databaseUrl },
      { name: `${name}pooled`, contestant, databaseUrl: route(databaseUrl) },
    );
  }
  await withStage(bundles, entries, async ({ targets }) => {
    const p50s: number[] = [];
    for (const target of targets) {
      const { latenciesMs } = await slice(target, 1, TIME);
      p50s.push(median(latenciesMs));
    }
    const cell = (index: number): string => `${p50s[index]?.toFixed(2)} ms`;
    printTable(
      ["p50 of a delivery, 1 connection", "straight to Postgres", "through the pooler"],
      PARTS.map(([, what], index) => [what, cell(2 * index), cell(2 * index + 1)]),
    );
  });
}

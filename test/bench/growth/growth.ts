/**
 * What growth costs: claims and receipts in an inbox of ten million events, what an event takes on
 * the disk, and what a drain leaves behind while somebody keeps an old snapshot open.
 *
 * `--rows` says how many processed events there are; a tenth as many wait.
 */
import { type Bench, type Extent, runBench } from "../bench.ts";
import { printMachine } from "../machine.ts";
import type { Result } from "../results.ts";
import { fillGrown } from "./fill.ts";
import { measureHeldSnapshot } from "./held-snapshot.ts";
import { measureSizes } from "./sizes.ts";
import { compare } from "./small-and-large.ts";

const SMALL = { processed: 1_000, waiting: 1_000 } as const;

export async function measureGrowth(bench: Bench, extent: Extent): Promise<readonly Result[]> {
  const small = { size: SMALL, url: await bench.database("growth_small") };
  const size = { processed: extent.rows, waiting: Math.ceil(extent.rows / 10) };
  const large = { size, url: await bench.database("growth_large") };
  for (const place of [small, large]) await fillGrown(place.url, place.size);
  return [
    ...(await compare(small, large)),
    ...(await measureSizes(bench, extent)),
    ...(await measureHeldSnapshot(bench)),
  ];
}

if (import.meta.main) {
  await runBench(printMachine, async (bench, extent) => {
    await measureGrowth(bench, extent);
  });
}

/**
 * How fast a backlog of `invoice.paid` is worked off, beside queues for Node that write the same
 * effects, and above the floor of what these take of Postgres alone.
 *
 * Everybody in turn has a slice of some seconds on a fresh database, round after round, and ratios
 * are taken within a round. Not measured: failing events, several processes, handlers that read.
 */
import { type Bench, type Extent, runBench, say } from "../bench.ts";
import { median, printTable } from "../figures.ts";
import { printMachine } from "../machine.ts";
import type { Result } from "../results.ts";
import {
  type Backlog,
  type Contestant,
  type Handler,
  makeBacklog,
  runSlice,
} from "./contestant.ts";
import { floors } from "./floors.ts";
import { graphileWorker } from "./graphile-worker.ts";
import { type Bar, type Claim, type Rates, judge, ratesOf } from "./judge.ts";
import { ours } from "./ours.ts";
import { pgBossBatches, pgBossEachAlone, pgBossNotAtomic } from "./pg-boss.ts";

const ROUNDS = 3;
/** Until what V8 compiles is compiled. */
const WARM_UP_SECONDS = 1.5;
const SECONDS = 2;

export async function measureDrain(bench: Bench, { events }: Extent): Promise<readonly Result[]> {
  const claims = claimsOf(bench);
  const rates = await runRounds(bench, contestantsOf(claims), events);
  print(rates, events);
  const results = claims.map((claim) => judge(rates, claim));
  printTable(
    ["drain", "result"],
    results.map(({ what, result }) => [what, result]),
  );
  return results;
}

/**
 * Judged against handlers as they are usually written. Prepared ones are told beside them: our
 * Worker prepares nothing either.
 */
function claimsOf(bench: Bench): readonly Claim[] {
  const { eachAlone, batched } = ours(bench);
  const floor = floors();
  const notAtomic = [...pgBossNotAtomic, ...graphileWorker];
  return [
    {
      what: "drain, one transaction per event",
      our: eachAlone,
      peers: [
        bar(2, "the best atomic peer", written("textbook", pgBossEachAlone)),
        bar(1, "the best peer that is not atomic", written("textbook", notAtomic)),
        bar(null, "the best atomic peer, prepared", written("prepared", pgBossEachAlone)),
        bar(null, "the best not atomic, prepared", written("prepared", notAtomic)),
      ],
      floor: bar(0.6, "the floor", floor ? [floor.eachAlone] : []),
    },
    {
      what: "drain, optimistic batches",
      our: batched,
      peers: [
        bar(1.3, "pg-boss in batches", written("one statement", pgBossBatches)),
        bar(null, "pg-boss in batches, prepared", written("prepared", pgBossBatches)),
      ],
      floor: bar(0.5, "the floor", floor ? [floor.batched] : []),
    },
  ];
}

function bar(least: number | null, name: string, others: readonly Contestant[]): Bar {
  return { least, name, others };
}

function written(handler: Handler, contestants: readonly Contestant[]): readonly Contestant[] {
  return contestants.filter((contestant) => contestant.handler === handler);
}

/** Ours stands between its peers and its floor. */
function contestantsOf(claims: readonly Claim[]): readonly Contestant[] {
  return claims.flatMap(({ our, peers, floor }) => [
    ...peers.flatMap(({ others }) => others),
    our,
    ...floor.others,
  ]);
}

async function runRounds(
  bench: Bench,
  contestants: readonly Contestant[],
  events: number,
): Promise<Rates> {
  const templates = new Map<Backlog, string>();
  for (const { backlog } of contestants) {
    if (templates.has(backlog)) continue;
    templates.set(backlog, await makeBacklog(bench, backlog, events));
  }
  const rates = new Map<Contestant, number[]>(contestants.map((contestant) => [contestant, []]));
  const slice = { events, warmUpSeconds: WARM_UP_SECONDS, seconds: SECONDS };
  for (let round = 1; round <= ROUNDS; round++) {
    for (const [contestant, measured] of rates) {
      const template = templates.get(contestant.backlog) ?? "";
      const rate = await runSlice(bench, contestant, template, slice);
      measured.push(rate);
      say(
        `drain, round ${round}: ${contestant.name} (${contestant.handler}): ${rate.toFixed(0)}/s`,
      );
    }
  }
  return rates;
}

function print(rates: Rates, events: number): void {
  printTable(
    [`drain of ${events} waiting events`, "handler", "completion", "events/s", "of rounds"],
    [...rates.keys()].map((contestant) => {
      const measured = ratesOf(rates, contestant);
      return [
        contestant.name,
        contestant.handler,
        contestant.completion,
        median(measured).toFixed(0),
        `${Math.min(...measured).toFixed(0)} to ${Math.max(...measured).toFixed(0)}`,
      ];
    }),
  );
}

if (import.meta.main) await runBench(printMachine, measureDrain);

/**
 * What the size of an inbox costs: a claim of 50 events and a synchronous receipt, as the Worker's
 * own code does them, before a small database and a large one in turn. Connections are open, and all
 * of both fits the memory of this machine, if not Postgres' own buffers.
 *
 * Not measured: reads from a disk, and a database that others use at the same time.
 */
import type { Client } from "pg";
import type { Claim } from "../../../src/inbox/transitions.ts";
import { withClient } from "../bench.ts";
import { median, percentile, printTable } from "../figures.ts";
import type { Result } from "../results.ts";
import { fillWithWaiting } from "../waiting-events.ts";
import { CLAIM_BATCH, type Driven, drive } from "./driven.ts";
import type { Grown } from "./fill.ts";

/** Ratios are the median of these, because the machine is noisy. */
const PASSES = 4;
const ROUNDS = 200;
const WARM_UP = 30;

/** At most so many times as long in the large one. */
const GOALS = { p50: 1.2, p95: 1.5 } as const;
const WHATS = ["claim", "receive"] as const;

interface Place {
  readonly size: Grown;
  readonly url: string;
}

/** In milliseconds. */
type Times = Readonly<Record<(typeof WHATS)[number], number[]>>;

interface Side extends Driven {
  /** What becomes of claimed events, so that neither database leaves its size. */
  readonly putAway: (claimed: readonly Claim[], round: string) => Promise<unknown>;
}

interface Pass {
  readonly small: Times;
  readonly large: Times;
}

export async function compare(small: Place, large: Place): Promise<readonly Result[]> {
  const passes = await onSide(small.url, replace, (inSmall) =>
    onSide(large.url, markAtOnce, async (inLarge) => {
      const sides = { small: inSmall, large: inLarge };
      await pass(sides, WARM_UP, "warm");
      const all: Pass[] = [];
      for (let n = 1; n <= PASSES; n++) all.push(await pass(sides, ROUNDS, `p${n}`));
      return all;
    }),
  );
  print(passes, { small: small.size, large: large.size });
  return WHATS.map((what) => result(what, passes, large.size));
}

function onSide<T>(
  url: string,
  putAway: (client: Client, ids: readonly string[], round: string) => Promise<unknown>,
  use: (side: Side) => Promise<T>,
): Promise<T> {
  return drive(url, 1, ([driven]) =>
    withClient(url, (client) =>
      use({
        ...driven,
        putAway: (claimed, round) =>
          putAway(
            client,
            claimed.map(({ eventId }) => eventId),
            round,
          ),
      }),
    ),
  );
}

const CLAIMED = "provider = 'stripe' and endpoint = 'billing' and event_id = any($1)";

/** As many new ones wait in their place. */
async function replace(client: Client, ids: readonly string[], round: string): Promise<void> {
  await client.query(`delete from webhook_inbox where ${CLAIMED}`, [ids]);
  await fillWithWaiting(client, { count: ids.length, name: round });
}

/** As the Worker marks them one by one, in less time. */
function markAtOnce(client: Client, ids: readonly string[]): Promise<unknown> {
  return client.query(
    `update webhook_inbox set processed_at = now(), outcome = 'processed', fence = fence + 1
     where ${CLAIMED}`,
    [ids],
  );
}

async function pass(
  sides: Readonly<Record<keyof Pass, Side>>,
  rounds: number,
  name: string,
): Promise<Pass> {
  const times: Pass = { small: { claim: [], receive: [] }, large: { claim: [], receive: [] } };
  for (let round = 0; round < rounds; round++) {
    const order = round % 2 === 0 ? (["small", "large"] as const) : (["large", "small"] as const);
    for (const side of order) {
      const { claim, receive, putAway } = sides[side];
      const claimed = await timed(times[side].claim, () => claim(CLAIM_BATCH));
      if (claimed.length !== CLAIM_BATCH) throw new Error(`Claimed only ${claimed.length}.`);
      await putAway(claimed, `${name}_${round}`);
      await timed(times[side].receive, () => receive(`evt_${name}_${round}`));
    }
  }
  return times;
}

async function timed<T>(times: number[], work: () => Promise<T>): Promise<T> {
  const startedAt = performance.now();
  const done = await work();
  times.push(performance.now() - startedAt);
  return done;
}

function ratios(passes: readonly Pass[], what: (typeof WHATS)[number]) {
  const ratio = (percent: number): number =>
    median(
      passes.map(
        ({ small, large }) => percentile(large[what], percent) / percentile(small[what], percent),
      ),
    );
  return { p50: ratio(50), p95: ratio(95) };
}

function result(what: (typeof WHATS)[number], passes: readonly Pass[], size: Grown): Result {
  const { p50, p95 } = ratios(passes, what);
  const ms = (side: keyof Pass, percent: number): string =>
    median(passes.map((one) => percentile(one[side][what], percent))).toFixed(1);
  return {
    what: `${what === "claim" ? `a claim of ${CLAIM_BATCH}` : "a synchronous receipt"} with ${words(size)}`,
    goal: `at most ${GOALS.p50} × p50 and ${GOALS.p95} × p95 of those with 1 k`,
    peers: "",
    floor: `with 1 k: p50 ${ms("small", 50)} ms, p95 ${ms("small", 95)} ms`,
    result:
      `${p50.toFixed(2)} × p50 (${ms("large", 50)} ms), ` +
      `${p95.toFixed(2)} × p95 (${ms("large", 95)} ms)`,
    holds: p50 <= GOALS.p50 && p95 <= GOALS.p95,
  };
}

function print(passes: readonly Pass[], sizes: Readonly<Record<keyof Pass, Grown>>): void {
  const rows = WHATS.flatMap((what) =>
    (["small", "large"] as const).map((side) => [
      what === "claim" ? `claim of ${CLAIM_BATCH}` : "synchronous receipt",
      words(sizes[side]),
      ...[50, 95, 99].map((percent) =>
        passes.map((one) => percentile(one[side][what], percent).toFixed(1)).join(" / "),
      ),
    ]),
  );
  printTable([`${PASSES} passes of ${ROUNDS}, in ms`, "with", "p50", "p95", "p99"], rows);
}

function words({ processed, waiting }: Grown): string {
  return `${processed.toLocaleString("en")} processed, ${waiting.toLocaleString("en")} waiting`;
}

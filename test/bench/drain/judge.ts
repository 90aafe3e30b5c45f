/** Whether a contestant clears its bars: ratios to the best of others. Pure. */
import { median } from "../figures.ts";
import type { Result } from "../results.ts";
import type { Contestant } from "./contestant.ts";

/** Effects per second, by round. */
export type Rates = ReadonlyMap<Contestant, readonly number[]>;

export interface Bar {
  /** What is to be reached, as a multiple of the best; null: told for comparison only. */
  readonly least: number | null;
  readonly name: string;
  /** None: it could not be measured here. */
  readonly others: readonly Contestant[];
}

export interface Claim {
  readonly what: string;
  readonly our: Contestant;
  readonly peers: readonly Bar[];
  readonly floor: Bar;
}

export function judge(rates: Rates, { what, our, peers, floor }: Claim): Result {
  const bars = [...peers, floor].map((bar) => measure(rates, our, bar));
  const demanded = bars.filter(({ least }) => least !== null);
  const isShort = demanded.some(({ least, ratio }) => ratio !== null && ratio < (least ?? 0));
  const isMeasured = demanded.every(({ ratio }) => ratio !== null);
  return {
    what,
    goal: demanded.map(({ least, name }) => `at least ${least} × ${name}`).join(", "),
    peers: bars.slice(0, -1).map(describe).join("; "),
    floor: bars.slice(-1).map(describe).join(""),
    result: `${perSecond(rates, our)}: ${bars.map(describeRatio).join(", ")}`,
    holds: isShort ? false : isMeasured ? true : null,
  };
}

export function ratesOf(rates: Rates, contestant: Contestant): readonly number[] {
  return rates.get(contestant) ?? [];
}

interface Measured extends Bar {
  readonly best: { readonly contestant: Contestant; readonly rate: string } | null;
  readonly ratio: number | null;
}

/** The ratio is the median of those within a round: what disturbed a round disturbed both. */
function measure(rates: Rates, our: Contestant, bar: Bar): Measured {
  const [contestant] = bar.others.toSorted(
    (a, b) => median(ratesOf(rates, b)) - median(ratesOf(rates, a)),
  );
  if (!contestant) return { ...bar, best: null, ratio: null };
  const theirs = ratesOf(rates, contestant);
  const ratios = ratesOf(rates, our).map((rate, round) => rate / (theirs[round] ?? Number.NaN));
  return {
    ...bar,
    best: { contestant, rate: perSecond(rates, contestant) },
    ratio: median(ratios),
  };
}

function describe({ name, best }: Measured): string {
  if (!best) return `${name}: not measured here`;
  const { contestant, rate } = best;
  return `${name}: ${contestant.name} (${contestant.handler}), ${rate}`;
}

function describeRatio({ name, ratio, least }: Measured): string {
  const text = `${ratio === null ? "?" : ratio.toFixed(2)} × ${name}`;
  return least === null ? `(${text})` : text;
}

function perSecond(rates: Rates, contestant: Contestant): string {
  return `${median(ratesOf(rates, contestant)).toFixed(0)}/s`;
}

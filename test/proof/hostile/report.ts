/** What came of all hostile inputs, as one table. */
import type { Tally } from "./tally.ts";
import type { Section } from "../report.ts";

export interface Outcome {
  readonly tallies: readonly Tally[];
  /** A broken receiver's: it must be found out. */
  readonly control: Tally;
  readonly seed: number;
  /** What workerd took of the machine's memory before, and the most it took more after an answer. */
  readonly startBytes: number;
  readonly growthBytes: number;
}

const MIB = 1024 * 1024;

/**
 * A few times what the heaviest inputs take while one after the other is garbage and not yet
 * collected: workerd has no limit here. What keeps something of each input passes it.
 */
const MOST_GROWTH_BYTES = 512 * MIB;

export function hostileSection(outcome: Outcome): Section {
  const { tallies, control, seed, startBytes, growthBytes } = outcome;
  const [slowest] = tallies.toSorted((a, b) => b.longestMs - a.longestMs);
  const wrong = (what: string): number =>
    control.problems.filter((problem) => problem.what === what).length;
  return {
    title: "Hostile input",
    columns: ["class", "inputs", "2xx", "4xx", "5xx", "none", "rows", "crashes"],
    rows: [
      ...tallies.map((tally) => [tally.name, ...figures([tally])]),
      ["all", ...figures(tallies)],
      ["control: believes what it is sent", ...figures([control])],
    ],
    notes: [
      `Seed ${seed}. The longest answer took ${slowest?.longestMs} ms, in "${slowest?.name}".`,
      `Memory of workerd: ${mib(startBytes)} before, at most ${mib(growthBytes)} more.`,
      "No answer: whoever left, or never ended a head. 5xx: workerd's own, for what is no method.",
      `The control gave ${wrong("answer")} wrong answers and wrote wrong rows ${wrong("rows")} times.`,
    ],
    failures: [
      ...tallies.flatMap(({ name, problems }) => problems.map(({ text }) => `${name}: ${text}`)),
      ...(growthBytes > MOST_GROWTH_BYTES ? [`the memory grew by ${mib(growthBytes)}`] : []),
      ...(wrong("answer") > 0 && wrong("rows") > 0 ? [] : ["the control was not found out"]),
    ],
  };
}

function figures(tallies: readonly Tally[]): number[] {
  const sum = (pick: (tally: Tally) => number): number =>
    tallies.reduce((total, tally) => total + pick(tally), 0);
  return [
    sum(({ inputs }) => inputs),
    ...(["2xx", "4xx", "5xx", "none"] as const).map((kind) => sum((tally) => tally.answered(kind))),
    sum(({ rows }) => rows),
    sum(({ crashes }) => crashes),
  ];
}

function mib(bytes: number): string {
  return `${Math.round(bytes / MIB)} MiB`;
}

/** What the races of all pairs have shown, as a person reads it. */
import { FAULTS, type Faults } from "./faults.ts";
import type { Pair } from "./pairs.ts";
import type { Control } from "./racing-controls.ts";
import type { Section } from "../report.ts";
import type { Step } from "./stepper.ts";

export interface PairReport {
  readonly name: string;
  /** Of each racer, at most. */
  readonly statements: readonly number[];
  readonly interleavings: number;
  /** False: there are more, and the pair is to be made smaller. */
  readonly complete: boolean;
  /** Those in which somebody waited for a lock. */
  readonly blocked: number;
  /** In how many interleavings there was such a fault. */
  readonly faulty: Readonly<Record<keyof Faults, number>>;
  /** Of each kind the first, with the order of statements that led there. */
  readonly examples: Readonly<Record<keyof Faults, string | null>>;
}

/** What was wrong, and the order that led there: `A begin, commit · B begin (waits)`. */
export function describeFault(faults: readonly string[], steps: readonly Step[]): string {
  let last = "";
  const words = steps.map(({ who, statement, waited }) => {
    const turn = who === last ? ", " : ` · ${who} `;
    last = who;
    return `${turn}${statement}${waited ? " (waits)" : ""}`;
  });
  const order = words.join("").slice(" · ".length);
  return `${faults.map(shorten).join("; ")}. Order: ${order}`;
}

/** A row's payload would hide the rest of it. */
function shorten(sentence: string): string {
  const row = sentence.indexOf("{");
  try {
    const parsed: unknown = JSON.parse(sentence.slice(row));
    const shown = JSON.stringify(parsed, (key, value: unknown) =>
      key === "payload" && value !== null ? "…" : value,
    );
    return sentence.slice(0, row) + shown;
  } catch {
    return sentence;
  }
}

export function sectionOf(
  pairs: readonly Pair[],
  controls: readonly Control[],
  reports: ReadonlyMap<Pair, PairReport>,
): Section {
  const reportOf = (pair: Pair): PairReport => {
    const report = reports.get(pair);
    if (!report) throw new Error(`Bug! ${pair.name} was not raced.`);
    return report;
  };
  const rowOf = (name: string, { statements, interleavings, blocked, faulty }: PairReport) => [
    name,
    statements.join("+"),
    interleavings,
    blocked,
    ...FAULTS.map((kind) => faulty[kind]),
  ];
  const caught = controls.map((control) => ({
    name: control.name,
    example: reportOf(control).examples[control.guiltyOf],
  }));
  return {
    title: "Races: every interleaving of two paths' statements, against the two serial orders",
    columns: ["pair", "statements", "interleavings", "blocked", ...FAULTS],
    rows: [
      ...pairs.map((pair) =>
        rowOf(pair.beginsAtOnce ? `${pair.name} *` : pair.name, reportOf(pair)),
      ),
      ...controls.map((control) => rowOf(`control: ${control.name}`, reportOf(control))),
    ],
    notes: [
      "All interleavings are enumerated, none sampled.",
      "* BEGIN, which locks nothing and reads only the clock, is no step of its own.",
      ...caught.flatMap(({ name, example }) => (example ? [`control: ${name}: ${example}`] : [])),
    ],
    failures: [
      ...pairs.flatMap((pair) =>
        FAULTS.flatMap((kind) => {
          const example = reportOf(pair).examples[kind];
          return example ? [`${pair.name}: ${kind}: ${example}`] : [];
        }),
      ),
      ...[...pairs, ...controls].flatMap((pair) =>
        reportOf(pair).complete ? [] : [`${pair.name}: not all interleavings were tried.`],
      ),
      ...caught.flatMap(({ name, example }) =>
        example ? [] : [`The harness does not see what goes wrong with: ${name}`],
      ),
    ],
  };
}

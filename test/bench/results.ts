/** The table that `npm run bench` ends with: each goal with its peers, its floor and what was seen. */
import { printTable } from "./figures.ts";

/** Cells of the table, in Markdown. */
export interface Result {
  readonly what: string;
  readonly goal: string;
  /** What others do in the same run, and what is the least that it takes; empty: there are none. */
  readonly peers: string;
  readonly floor: string;
  readonly result: string;
  /** Null: it could not be measured here. */
  readonly holds: boolean | null;
}

export function printResults(results: readonly Result[]): void {
  printTable(
    ["what", "goal", "peers", "floor", "result", "holds"],
    results.map(({ what, goal, peers, floor, result, holds }) => [
      what,
      goal,
      peers,
      floor,
      result,
      holds === null ? "not measured" : holds ? "yes" : "no",
    ]),
  );
}

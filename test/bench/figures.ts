/** Figures and the tables that they are printed in. Pure but for `printTable`. */

/** Of an empty list: NaN. */
export function percentile(numbers: readonly number[], percent: number): number {
  const sorted = numbers.toSorted((a, b) => a - b);
  return sorted[Math.ceil((percent / 100) * sorted.length) - 1] ?? Number.NaN;
}

/** As good as the middle gets with few samples: of an even number, the mean of the middle two. */
export function median(numbers: readonly number[]): number {
  const sorted = numbers.toSorted((a, b) => a - b);
  const upper = sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
  const lower = sorted[Math.ceil(sorted.length / 2) - 1] ?? Number.NaN;
  return (lower + upper) / 2;
}

/** In Markdown, and on stdout. */
export function printTable(head: readonly string[], rows: readonly (readonly string[])[]): void {
  const rule = `|${head.map(() => "---|").join("")}`;
  console.log([line(head), rule, ...rows.map(line), ""].join("\n"));
}

function line(cells: readonly string[]): string {
  return `| ${cells.join(" | ")} |`;
}

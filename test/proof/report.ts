/** What a part of the proof found, as a table that a person can read. */

export interface Section {
  readonly title: string;
  readonly columns: readonly string[];
  readonly rows: readonly (readonly (string | number)[])[];
  /** What the table does not say: seeds, what was left out and why. */
  readonly notes: readonly string[];
  /** One sentence for each thing that should not be; empty when the part holds. */
  readonly failures: readonly string[];
}

/** How many failures are written out. */
const SHOWN_FAILURES = 10;

/** The section as text: its first column to the left, the others to the right. */
export function renderSection({ title, columns, rows, notes, failures }: Section): string {
  const cells = [columns, ...rows].map((row) => row.map(String));
  const widths = columns.map((_, index) =>
    Math.max(...cells.map((row) => (row[index] ?? "").length)),
  );
  const line = (row: readonly string[]): string =>
    row
      .map((cell, index) =>
        index === 0 ? cell.padEnd(widths[0] ?? 0) : cell.padStart(widths[index] ?? 0),
      )
      .join("  ")
      .trimEnd();
  const left = failures.length - SHOWN_FAILURES;
  return [
    title,
    ...cells.map((row) => `  ${line(row)}`),
    ...notes.map((note) => `  ${note}`),
    ...failures.slice(0, SHOWN_FAILURES).map((failure) => `  FAILED: ${failure}`),
    ...(left > 0 ? [`  and ${left} more.`] : []),
  ].join("\n");
}

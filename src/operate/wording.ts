/** How numbers and names are put into words, wherever a person reads them. */

const MOST_NAMED = 5;

/** The first few of them, and how many more there are. */
export function few(names: readonly string[]): string {
  const more = names.length - MOST_NAMED;
  return names.slice(0, MOST_NAMED).join(", ") + (more > 0 ? ` and ${more} more` : "");
}

export function some({ count, more }: { readonly count: number; readonly more: boolean }): string {
  return more ? `more than ${number(count)}` : number(count);
}

const NUMBER = new Intl.NumberFormat("en");

export const number = (value: number): string => NUMBER.format(value);

/** A word of ours for a person: `needs_review` as "needs review". */
export const spoken = (word: string): string => word.replaceAll("_", " ");

/** `1 event`, `2 events`. */
export function counted(count: number, what: string): string {
  const plural = what === "discrepancy" ? "discrepancies" : `${what}s`;
  return `${number(count)} ${count === 1 ? what : plural}`;
}

/** `more than 5,000 events`. */
export function someOf(
  of: { readonly count: number; readonly more: boolean },
  what: string,
): string {
  return `${of.more ? "more than " : ""}${counted(of.count, what)}`;
}

/** A time in the largest unit that says enough. */
export function span(seconds: number): string {
  if (seconds < 120) return `${Math.round(seconds)} s`;
  if (seconds < 7_200) return `${Math.round(seconds / 60)} min`;
  return seconds < 172_800
    ? `${Math.round(seconds / 3_600)} h`
    : `${Math.round(seconds / 86_400)} d`;
}

/** The same of what may be short: `20 ms`, `1.2 s`. */
export function brief(seconds: number): string {
  if (seconds < 1) return `${Math.round(seconds * 1_000)} ms`;
  return seconds < 10 ? `${seconds.toFixed(1)} s` : span(seconds);
}

/**
 * What was wrong with a race, if anything: an end that neither serial order has, work done twice or
 * not at all, and words that were not true when they were said. Pure.
 */
import { type Books, compareBooks, type Verdict } from "../stage/books.ts";
import type { Effects, Fact, Played, Told } from "./racetrack.ts";

export const FAULTS = ["lost", "doubled", "stuck", "other"] as const;

/** Sentences; all empty when nothing was wrong. */
export type Faults = Readonly<Record<(typeof FAULTS)[number], readonly string[]>>;

/** @param serialEnds what the books say when one racer comes after the other, in both orders. */
export function faultsOf(
  { told, effects, books }: Played,
  serialEnds: readonly Books[],
  { forgets = false }: { readonly forgets?: boolean },
): Faults {
  const { lost, doubled, stuck, differing } = nearest(serialEnds, books);
  const once = forgets ? { lost: [], doubled: [] } : workedOnce(books);
  return {
    lost: [...lost, ...once.lost],
    doubled: [...doubled, ...once.doubled],
    stuck,
    other: [
      ...differing,
      ...untrueCounts(told, effects),
      ...told.flatMap((word) => untrueWord(word, forgets)),
    ],
  };
}

function nearest(serialEnds: readonly Books[], books: Books): Verdict {
  const [first, ...others] = serialEnds.map((end) => compareBooks(end, books));
  if (!first) throw new Error("Bug! There is no serial order.");
  return others.reduce((best, verdict) => (size(verdict) < size(best) ? verdict : best), first);
}

function size({ lost, doubled, stuck, differing }: Verdict): number {
  return lost.length + doubled.length + stuck.length + differing.length;
}

/** Every processed event took effect once, whatever the serial orders say. */
function workedOnce(books: Books): Pick<Faults, "lost" | "doubled"> {
  const processed = (books.get("webhook_inbox") ?? [])
    .filter((row) => row["outcome"] === "processed")
    .map((row) => String(row["event_id"]));
  const effects = (books.get("effects") ?? []).map((row) => String(row["event_id"]));
  return {
    lost: processed.filter((id) => !effects.includes(id)).map((id) => `the effect of ${id}`),
    doubled: effects
      .filter((id, index) => effects.indexOf(id) !== index)
      .map((id) => `another effect of ${id}`),
  };
}

/** In the race, as many effects as somebody was told. */
function untrueCounts(told: readonly Told[], { before, after }: Played["effects"]): string[] {
  const ids = new Set([...after.keys(), ...told.map(({ eventId }) => eventId)]);
  return [...ids].flatMap((id) => {
    const words = told.filter(({ eventId, outcome }) => eventId === id && outcome === "processed");
    const effects = times(after, id) - times(before, id);
    return effects === words.length
      ? []
      : [`${effects} effects of ${id}, and ${words.length} were told "processed"`];
  });
}

function times(effects: Effects, id: string): number {
  return effects.get(id) ?? 0;
}

/** What was said, against what was committed at that moment. */
function untrueWord(word: Told, forgets: boolean): string[] {
  const { who, eventId, outcome, error, fact } = word;
  // Its name is that of no fault that is foreseen.
  const unforeseen = outcome === "threw" || error === "Error";
  if (!unforeseen && fact !== null && isTrue(word, fact, forgets)) return [];
  const code = error === undefined ? "" : ` (${error})`;
  return [`${who} was told "${outcome}"${code} of ${eventId} when it was ${JSON.stringify(fact)}`];
}

function isTrue({ outcome, recorded }: Told, fact: Fact, forgets: boolean): boolean {
  const waits = fact.known && !fact.settled && !fact.parked;
  switch (outcome) {
    case "processed":
    case "ignored":
      return fact.settled && fact.outcome === outcome;
    case "stored":
      return fact.known;
    // Nobody delivers it again: it is done, or somebody still comes to it. What retention forgets
    // was done.
    case "duplicate":
      return fact.settled || waits || (forgets && !fact.known);
    // A person may have requeued it since it was read: then a tick comes to it.
    case "needs_review":
      return fact.parked || waits;
    case "failed":
      return waits || recorded === false;
    case "taken":
      return true;
    case "threw":
      return false;
  }
}

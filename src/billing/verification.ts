/**
 * Every invoice that Stripe has of a time, and every one that changed here since, against the other
 * side. Reads only; what was found is for the caller to act upon.
 */
import type { Connection } from "../db/connect.ts";
import type { Timeouts } from "../db/transaction.ts";
import type { InvoiceLists, InvoiceObject } from "../stripe/lists.ts";
import { readIdsToCompare, readInvoicesHere } from "./booked.ts";
import {
  compareInvoice,
  type Difference,
  type InvoiceHere,
  readInvoiceThere,
} from "./comparison.ts";

/** One invoice, as it was compared. */
export interface Compared {
  readonly id: string;
  /** As Stripe has it; null: it has none. */
  readonly there: InvoiceObject | null;
  readonly isHere: boolean;
  /** It changed so lately that its events may still be on their way: it was not compared. */
  readonly moving: boolean;
  readonly difference: Difference | null;
}

export interface Books {
  readonly db: Connection;
  readonly timeouts: Timeouts;
  /** The invoices of the account that is booked here. */
  readonly own: InvoiceLists;
  /** Those of connected accounts: what is theirs is not compared. */
  readonly connected: readonly InvoiceLists[];
}

/** As long as a sweep, too, waits for events to come by themselves. */
const MOVING_SECONDS = 15 * 60;
const IDS_IN_ONE_READ = 100;
/** Requests to Stripe at a time, for invoices that its list did not show. */
const READS_AT_ONCE = 4;

/** What Stripe lists as created since; and what changed here since, or may still change. */
export async function* compareAll(books: Books, since: Date): AsyncGenerator<Compared> {
  const { db, timeouts, own } = books;
  const seen = new Set<string>();
  for await (const invoices of pagesOf(own, since)) {
    const ids = invoices.map(({ id }) => id);
    const here = await readInvoicesHere(db, ids, timeouts);
    for (const invoice of invoices) {
      seen.add(invoice.id);
      const compared = compareOne(invoice.id, invoice, here.get(invoice.id) ?? null);
      // The list may have been older than what was read here.
      if (compared.difference) yield* await compareFresh(books, [invoice.id]);
      else yield compared;
    }
  }
  for await (const ids of idsHere(books, since)) {
    yield* await compareFresh(
      books,
      ids.filter((id) => !seen.has(id)),
    );
  }
}

/** Both sides read anew. */
export async function compareFresh(
  { db, timeouts, own, connected }: Books,
  ids: readonly string[],
): Promise<readonly Compared[]> {
  const there: (InvoiceObject | null)[] = [];
  for (let begin = 0; begin < ids.length; begin += READS_AT_ONCE) {
    const some = ids.slice(begin, begin + READS_AT_ONCE);
    there.push(...(await Promise.all(some.map((id) => own.read(id)))));
  }
  // Read last, so that what came in between is seen.
  const here = await readInvoicesHere(db, ids, timeouts);
  const compared = ids.map((id, index) =>
    compareOne(id, there[index] ?? null, here.get(id) ?? null),
  );
  const missing = compared.filter(({ difference }) => difference?.kind === "missing_at_stripe");
  const theirs = new Set<string>();
  for (const { id } of missing) if (await isAmong(connected, id)) theirs.add(id);
  return compared.filter(({ id }) => !theirs.has(id));
}

async function isAmong(accounts: readonly InvoiceLists[], id: string): Promise<boolean> {
  for (const lists of accounts) if ((await lists.read(id)) !== null) return true;
  return false;
}

/** @param there what Stripe answered; null: it has no such invoice. */
function compareOne(id: string, there: InvoiceObject | null, here: InvoiceHere | null): Compared {
  const invoice = there && readInvoiceThere(there);
  const changedAt = (invoice ?? here)?.changedAt ?? 0;
  const moving = changedAt > Date.now() / 1_000 - MOVING_SECONDS;
  const difference = moving ? null : compareInvoice(invoice, here);
  return { id, there, isHere: here !== null, moving, difference };
}

async function* pagesOf(
  lists: InvoiceLists,
  since: Date,
): AsyncGenerator<readonly InvoiceObject[]> {
  let after: string | null = null;
  do {
    const page = await lists.created(Math.floor(since.getTime() / 1_000), after);
    yield page.invoices;
    after = page.next;
  } while (after !== null);
}

async function* idsHere({ db, timeouts }: Books, since: Date): AsyncGenerator<readonly string[]> {
  for (let after = ""; ;) {
    const ids = await readIdsToCompare(db, since, after, IDS_IN_ONE_READ, timeouts);
    if (ids.length === 0) return;
    yield ids;
    after = ids.at(-1) ?? "";
  }
}

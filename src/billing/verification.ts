/**
 * Every invoice that Stripe has of a time, and every one that changed here since, against the other
 * side. Reads only; what was found is for the caller to act upon.
 */
import type { Connection } from "../db/connect.ts";
import type { Timeouts } from "../db/transaction.ts";
import type { InvoiceLists, InvoiceObject } from "../stripe/lists.ts";
import { readChangedIds, readInvoicesHere } from "./booked.ts";
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

export interface VerifyOptions {
  readonly since: Date;
  readonly timeouts: Timeouts;
}

/** As long as a sweep, too, waits for events to come by themselves. */
const MOVING_SECONDS = 15 * 60;
const IDS_IN_ONE_READ = 100;
/** Requests to Stripe at a time, for invoices that its list did not show. */
const READS_AT_ONCE = 4;

/** @param accounts the lists of each account whose invoices are booked here. */
export async function* compareAll(
  db: Connection,
  accounts: readonly InvoiceLists[],
  { since, timeouts }: VerifyOptions,
): AsyncGenerator<Compared> {
  const read = (id: string): Promise<InvoiceObject | null> => readAnywhere(accounts, id);
  const compareFresh = async (ids: readonly string[]): Promise<readonly Compared[]> => {
    const there = await Promise.all(ids.map(read));
    // Read last, so that what came in between is seen.
    const here = await readInvoicesHere(db, ids, timeouts);
    return ids.map((id, index) => compareOne(id, there[index] ?? null, here.get(id) ?? null));
  };
  const seen = new Set<string>();
  for (const lists of accounts) {
    for await (const invoices of pagesOf(lists, since)) {
      const ids = invoices.map(({ id }) => id);
      const here = await readInvoicesHere(db, ids, timeouts);
      for (const invoice of invoices) {
        seen.add(invoice.id);
        const compared = compareOne(invoice.id, invoice, here.get(invoice.id) ?? null);
        // The list may have been older than what was read here.
        if (compared.difference) yield* await compareFresh([invoice.id]);
        else yield compared;
      }
    }
  }
  for await (const ids of changedHere(db, since, timeouts)) {
    const unseen = ids.filter((id) => !seen.has(id));
    for (let begin = 0; begin < unseen.length; begin += READS_AT_ONCE) {
      yield* await compareFresh(unseen.slice(begin, begin + READS_AT_ONCE));
    }
  }
}

/** @param there what Stripe answered; null: it has no such invoice. */
export function compareOne(
  id: string,
  there: InvoiceObject | null,
  here: InvoiceHere | null,
): Compared {
  const invoice = there && readInvoiceThere(there);
  const moving = (invoice?.changedAt ?? 0) > Date.now() / 1_000 - MOVING_SECONDS;
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
    after = page.more ? (page.invoices.at(-1)?.id ?? null) : null;
  } while (after !== null);
}

async function* changedHere(
  db: Connection,
  since: Date,
  timeouts: Timeouts,
): AsyncGenerator<readonly string[]> {
  for (let after = ""; ;) {
    const ids = await readChangedIds(db, since, after, IDS_IN_ONE_READ, timeouts);
    if (ids.length === 0) return;
    yield ids;
    after = ids.at(-1) ?? "";
  }
}

async function readAnywhere(
  accounts: readonly InvoiceLists[],
  id: string,
): Promise<InvoiceObject | null> {
  for (const lists of accounts) {
    const invoice = await lists.read(id);
    if (invoice !== null) return invoice;
  }
  return null;
}

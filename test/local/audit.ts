/**
 * The books in Postgres against the books that the events must lead to. Only the rows of those
 * events and invoices are read, so that other runs in the same database do not disturb.
 */
import { setTimeout as pause } from "node:timers/promises";
import { Client } from "pg";
import type { ExpectedBooks, ExpectedReceipt } from "./books.ts";
import { callTick } from "./cron.ts";
import type { ExpectedInvoice } from "./invoice-ends.ts";
import type { Receiver } from "./run-file.ts";

interface Receipt {
  readonly endpoint: string;
  readonly event_id: string;
  readonly event_type: string;
  readonly object_id: string | null;
  readonly outcome: string | null;
  readonly ignored_reason: string | null;
  readonly last_error: string | null;
  readonly state: "settled" | "parked" | "waiting";
  readonly attempts: number;
  /** Until its lease or its back-off ends; negative when it is due. */
  readonly due_in_seconds: number;
}
interface Invoice {
  readonly id: string;
  readonly status: string;
  readonly customer_id: string | null;
  readonly currency: string | null;
  readonly amount_paid: number;
}
interface Entry {
  readonly invoice_id: string;
  readonly amount: number;
  readonly currency: string | null;
  readonly event_id: string;
}
interface Message {
  readonly aggregate_id: string;
  readonly event_type: string;
  readonly payload: Readonly<Record<string, unknown>>;
}
interface Discrepancy {
  readonly kind: string;
  readonly object_id: string;
}

/** What Postgres holds about the events and invoices of one stream. */
export interface Books {
  readonly receipts: readonly Receipt[];
  readonly invoices: readonly Invoice[];
  readonly entries: readonly Entry[];
  readonly messages: readonly Message[];
  readonly discrepancies: readonly Discrepancy[];
}

export interface Audit {
  readonly books: Books;
  /** One sentence each; empty when the books agree. */
  readonly differences: readonly string[];
  /** Why the cron could not be called, if it had to be and could not. */
  readonly cronFailure: string | null;
}

export interface AuditOptions {
  readonly signal?: AbortSignal;
  /** Called when there is something to wait for, and for how long at most. */
  readonly onWait?: (events: number, seconds: number) => void;
}

/** Sends one statement and returns its rows. */
export type Query = (text: string, values?: unknown[]) => Promise<object[]>;

const POLL_MS = 250;
/** Once nothing keeps an event from being processed. */
const PATIENCE_MS = 20_000;
/** Leases of two minutes, a tick a minute: then it is not late, but lost. */
const MAX_PATIENCE_MS = 200_000;

/**
 * Reads the books, once every event is settled or patience is at its end, and compares them.
 * Whatever is due and not processed, the receiver's cron is called for.
 */
export async function audit(
  { url, databaseUrl }: Pick<Receiver, "url" | "databaseUrl">,
  expected: ExpectedBooks,
  { signal, onWait }: AuditOptions = {},
): Promise<Audit> {
  const client = new Client({
    connectionString: databaseUrl,
    application_name: "simulated stripe",
  });
  await client.connect();
  const query: Query = async (text, values) => (await client.query(text, values)).rows;
  try {
    let books = await readBooks(query, expected);
    let cronFailure: string | null = null;
    const endsAt = Date.now() + patienceWith(books);
    for (;;) {
      const waiting = books.receipts.filter(({ state }) => state === "waiting");
      if (waiting.length === 0 || Date.now() >= endsAt) break;
      onWait?.(waiting.length, Math.ceil((endsAt - Date.now()) / 1000));
      // Before that, the Worker may be at it behind its answer.
      if (waiting.some((row) => row.due_in_seconds < 0)) cronFailure = await callTick(url, signal);
      await pause(POLL_MS, undefined, signal ? { signal } : {});
      books = await readBooks(query, expected);
    }
    return { books, differences: compareBooks(expected, books), cronFailure };
  } finally {
    await client.end();
  }
}

/** Leases and back-offs that are under way must end first. */
function patienceWith({ receipts }: Books): number {
  const waiting = receipts.filter(({ state }) => state === "waiting");
  const dueInMs = waiting.map((row) => Math.max(0, row.due_in_seconds) * 1000);
  return Math.min(Math.max(0, ...dueInMs) + PATIENCE_MS, MAX_PATIENCE_MS);
}

/** @param query runs each of its statements on the same connection. */
export async function readBooks(query: Query, expected: ExpectedBooks): Promise<Books> {
  const eventIds = expected.receipts.map(({ eventId }) => eventId);
  const invoiceIds = [...expected.mentioned];
  const read = async <Row extends object>(text: string, ids: readonly string[]) =>
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- The statement says which rows.
    (await query(text, [ids])) as Row[];
  // One snapshot: the rows of a transaction that commits meanwhile are seen together or not at all.
  await query("begin isolation level repeatable read read only");
  const books: Books = {
    receipts: await read<Receipt>(
      `select endpoint, event_id, event_type, object_id, outcome, ignored_reason, last_error,
              case when processed_at is not null then 'settled'
                   when parked_at is not null then 'parked' else 'waiting' end as state,
              attempts, extract(epoch from available_at - now())::float8 as due_in_seconds
         from webhook_inbox where provider = 'stripe' and event_id = any($1)`,
      eventIds,
    ),
    invoices: await read<Invoice>(
      `select id, status, customer_id, currency, amount_paid::float8 as amount_paid
         from invoices where id = any($1)`,
      invoiceIds,
    ),
    entries: await read<Entry>(
      `select invoice_id, amount::float8 as amount, currency, event_id
         from ledger_entries where invoice_id = any($1)`,
      invoiceIds,
    ),
    messages: await read<Message>(
      `select aggregate_id, event_type, payload from outbox where aggregate_id = any($1)`,
      invoiceIds,
    ),
    discrepancies: await read<Discrepancy>(
      `select kind, object_id from discrepancies where object_id = any($1)`,
      invoiceIds,
    ),
  };
  await query("commit");
  return books;
}

/** Every way in which the two differ, in one sentence each. */
export function compareBooks(expected: ExpectedBooks, books: Books): readonly string[] {
  const rowOf = new Map(books.receipts.map((row) => [`${row.endpoint} ${row.event_id}`, row]));
  const wanted = new Set(expected.receipts.map((row) => `${row.endpoint} ${row.eventId}`));
  const differences = expected.receipts.flatMap((receipt) =>
    compareReceipt(receipt, rowOf.get(`${receipt.endpoint} ${receipt.eventId}`)),
  );
  for (const key of rowOf.keys()) {
    if (!wanted.has(key)) differences.push(`inbox: ${key} was never sent there`);
  }
  const invoices = new Map(books.invoices.map((row) => [row.id, row]));
  const entries = Map.groupBy(books.entries, (row) => row.invoice_id);
  const messages = Map.groupBy(books.messages, (row) => row.aggregate_id);
  const discrepancies = Map.groupBy(books.discrepancies, (row) => row.object_id);
  for (const id of expected.mentioned) {
    const rows = {
      invoice: invoices.get(id),
      entries: entries.get(id) ?? [],
      messages: messages.get(id) ?? [],
      discrepancies: discrepancies.get(id) ?? [],
    };
    differences.push(...compareInvoice(id, expected.invoices.get(id) ?? [], rows));
  }
  return differences;
}

function compareReceipt(expected: ExpectedReceipt, row: Receipt | undefined): string[] {
  const name = `inbox: ${expected.eventType} ${expected.eventId} at ${expected.endpoint}`;
  if (row === undefined) return [`${name} has no row`];
  const differ = (what: string, is: string | null, wanted: string | null) =>
    is === wanted ? [] : [`${name}: ${what} is ${is}, expected ${wanted}`];
  return [
    ...differ("state", row.last_error ? `${row.state} (${row.last_error})` : row.state, "settled"),
    ...differ("type", row.event_type, expected.eventType),
    ...differ("object", row.object_id, expected.objectId),
    ...differ("outcome", row.outcome, expected.outcome),
    ...differ("ignored reason", row.ignored_reason, expected.ignoredReason),
  ];
}

interface InvoiceRows {
  readonly invoice: Invoice | undefined;
  readonly entries: readonly Entry[];
  readonly messages: readonly Message[];
  readonly discrepancies: readonly Discrepancy[];
}

/** The differences from the end that is nearest to what the rows say. */
function compareInvoice(id: string, ends: readonly ExpectedInvoice[], rows: InvoiceRows): string[] {
  if (ends.length === 0) {
    const found = [rows.invoice, ...rows.entries, ...rows.messages, ...rows.discrepancies];
    return found.some((row) => row !== undefined)
      ? [`invoice ${id} is in the books, and no event says so`]
      : [];
  }
  const perEnd = ends.map((end) => compareEnd(id, end, rows));
  return perEnd.toSorted((a, b) => a.length - b.length)[0] ?? [];
}

function compareEnd(id: string, end: ExpectedInvoice, rows: InvoiceRows): string[] {
  const differences: string[] = [];
  const expect = (holds: boolean, what: string) => {
    if (!holds) differences.push(`invoice ${id}: ${what}`);
  };
  const { invoice, entries, messages } = rows;
  if (invoice === undefined) return [`invoice ${id} is not in the books`];

  expect(
    end.statuses.some((status) => status === invoice.status),
    `status is ${invoice.status}, expected ${end.statuses.join(" or ")}`,
  );
  expect(end.customers.includes(invoice.customer_id), `customer is ${invoice.customer_id}`);
  expect(end.currencies.includes(invoice.currency), `currency is ${invoice.currency}`);

  const [entry] = entries;
  const wantedEntries = end.entries.length > 0 ? 1 : 0;
  expect(
    entries.length === wantedEntries,
    `${entries.length} ledger entries, expected ${wantedEntries}`,
  );
  expect(
    messages.length === entries.length,
    `${messages.length} outbox messages for ${entries.length} ledger entries`,
  );
  expect(
    invoice.amount_paid === (entry?.amount ?? 0),
    `amount_paid is ${invoice.amount_paid}, and ${entry?.amount ?? 0} is booked`,
  );
  if (entry) {
    const told = end.entries.some(
      ({ amount, currency, eventIds }) =>
        amount === entry.amount && currency === entry.currency && eventIds.includes(entry.event_id),
    );
    expect(told, `booked ${entry.amount} ${entry.currency} by ${entry.event_id}, which says other`);
  }
  for (const { event_type, payload } of messages) {
    const agrees =
      event_type === "InvoicePaymentBooked" &&
      payload["invoice_id"] === id &&
      payload["amount"] === entry?.amount &&
      payload["currency"] === entry?.currency &&
      payload["event_id"] === entry?.event_id &&
      [null, ...end.customers].some((customer) => customer === payload["customer_id"]);
    expect(agrees, `its outbox message does not say what its ledger entry says`);
  }

  const kinds = rows.discrepancies.map(({ kind }) => kind).toSorted();
  const wantedKinds = end.discrepancies.toSorted();
  expect(
    kinds.join() === wantedKinds.join(),
    `discrepancies are ${kinds.join() || "none"}, expected ${wantedKinds.join() || "none"}`,
  );
  return differences;
}

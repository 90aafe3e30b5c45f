/**
 * The books after a soak, against an independent fold of what was sent: wave by wave, event by
 * event, invoice by invoice; and each handler's work once for each time that its event was processed.
 */
import { type Books, compareBooks, type Query, readBooks } from "../../local/audit.ts";
import type { ExpectedBooks } from "../../local/books.ts";
import type { Wave } from "./waves.ts";

export interface Finding {
  readonly what: "lost" | "doubled" | "stuck" | "differing";
  /** The event or the invoice that it is about. */
  readonly about: string;
  readonly sentence: string;
}

/** Every way in which the books are not what one wave must lead to. */
export async function auditWave(query: Query, wave: Wave): Promise<readonly Finding[]> {
  const books = await readBooks(query, wave.expected);
  return [
    ...receiptFindings(wave.expected, books),
    ...invoiceFindings(wave.expected, books),
    ...(await effectFindings(query, wave, books)),
    ...(await parkedFindings(query, wave)),
    ...deliveryFindings(wave),
  ];
}

/** Rows that no wave speaks of. */
export async function auditTotals(
  query: Query,
  waves: readonly Wave[],
): Promise<readonly Finding[]> {
  const sum = (size: (wave: Wave) => number): number =>
    waves.reduce((total, wave) => total + size(wave), 0);
  const most = {
    webhook_inbox: sum(({ expected, parked }) => expected.receipts.length + parked.size),
    effects: sum(({ expected }) => processedIn(expected).length),
    invoices: sum(({ expected }) => expected.invoices.size),
  };
  const findings: Finding[] = [];
  for (const [table, wanted] of Object.entries(most)) {
    const [row] = await query(`select count(*)::int as found from ${table}`);
    const found = row && "found" in row ? Number(row.found) : 0;
    if (found > wanted) {
      const sentence = `${table}: ${found} rows, expected ${wanted}`;
      findings.push({ what: "doubled", about: table, sentence });
    }
  }
  return findings;
}

const NOTHING_EXPECTED: ExpectedBooks = {
  receipts: [],
  invoices: new Map(),
  mentioned: new Set(),
};
const NOTHING: Books = {
  receipts: [],
  invoices: [],
  entries: [],
  messages: [],
  discrepancies: [],
};

function receiptFindings({ receipts }: ExpectedBooks, books: Books): Finding[] {
  const wanted = new Map(receipts.map((one) => [`${one.endpoint} ${one.eventId}`, one]));
  const found = new Map(books.receipts.map((row) => [`${row.endpoint} ${row.event_id}`, row]));
  return [...new Set([...wanted.keys(), ...found.keys()])].flatMap((key) => {
    const receipt = wanted.get(key);
    const row = found.get(key);
    return compareBooks(
      { ...NOTHING_EXPECTED, receipts: receipt ? [receipt] : [] },
      { ...NOTHING, receipts: row ? [row] : [] },
    ).map((sentence) => {
      const about = key;
      if (row === undefined) return { what: "lost", about, sentence };
      if (receipt === undefined) return { what: "doubled", about, sentence };
      return { what: row.state === "settled" ? "differing" : "stuck", about, sentence };
    });
  });
}

function invoiceFindings({ invoices, mentioned }: ExpectedBooks, books: Books): Finding[] {
  const byInvoice = {
    invoices: Map.groupBy(books.invoices, ({ id }) => id),
    entries: Map.groupBy(books.entries, ({ invoice_id }) => invoice_id),
    messages: Map.groupBy(books.messages, ({ aggregate_id }) => aggregate_id),
    discrepancies: Map.groupBy(books.discrepancies, ({ object_id }) => object_id),
  };
  const unsettled = new Set(
    books.receipts.filter(({ state }) => state !== "settled").map(({ object_id }) => object_id),
  );
  return [...mentioned].flatMap((id) => {
    const ends = invoices.get(id);
    const own = {
      ...NOTHING,
      invoices: byInvoice.invoices.get(id) ?? [],
      entries: byInvoice.entries.get(id) ?? [],
      messages: byInvoice.messages.get(id) ?? [],
      discrepancies: byInvoice.discrepancies.get(id) ?? [],
    };
    const wanted = {
      ...NOTHING_EXPECTED,
      invoices: new Map(ends ? [[id, ends]] : []),
      mentioned: new Set([id]),
    };
    const entries = (ends ?? []).map((end) => Math.min(1, end.entries.length));
    const rows = own.entries.length;
    const lost = rows < Math.min(...entries) || own.messages.length < rows;
    const doubled = rows > Math.max(0, ...entries) || own.messages.length > rows;
    return compareBooks(wanted, own).map((sentence) => {
      const about = id;
      if (doubled) return { what: "doubled", about, sentence };
      // What is not booked yet is not lost.
      if (unsettled.has(id)) return { what: "stuck", about, sentence };
      const gone = lost || (ends && own.invoices.length === 0);
      return { what: gone ? "lost" : "differing", about, sentence };
    });
  });
}

/** A handler writes one row more each time that it runs, and no key keeps it from writing another. */
async function effectFindings(
  query: Query,
  { expected, parked }: Wave,
  { receipts }: Books,
): Promise<Finding[]> {
  const processed = receipts.filter(({ outcome }) => outcome === "processed");
  const wanted = Map.groupBy(processed, ({ event_id }) => event_id);
  const ids = [...expected.receipts.map(({ eventId }) => eventId), ...[...parked].map(eventOf)];
  const rows = await query(
    "select event_id, count(*)::int as effects from effects where event_id = any($1) group by 1",
    [ids],
  );
  const found = new Map(
    rows.map((row) => [textOf(row, "event_id"), Number(textOf(row, "effects"))]),
  );
  return [...new Set(ids)].flatMap((id): Finding[] => {
    const is = found.get(id) ?? 0;
    const should = wanted.get(id)?.length ?? 0;
    if (is === should) return [];
    const sentence = `event ${id}: its work was done ${is} times, and marked as done ${should} times`;
    return [{ what: is < should ? "lost" : "doubled", about: id, sentence }];
  });
}

/** What can never be processed waits for a person, and had no effect. */
async function parkedFindings(query: Query, { parked }: Wave): Promise<Finding[]> {
  const rows = await query(
    `select endpoint || ' ' || event_id as key,
        case when parked_at is not null then 'parked'
             when processed_at is not null then 'settled' else 'waiting' end as state, last_error
      from webhook_inbox where event_id = any($1)`,
    [[...parked].map(eventOf)],
  );
  const found = new Map(rows.map((row) => [textOf(row, "key"), row]));
  return [...parked].flatMap((key): Finding[] => {
    const row = found.get(key);
    if (row === undefined) {
      return [{ what: "lost", about: key, sentence: `inbox: ${key} has no row` }];
    }
    const state = textOf(row, "state");
    const error = textOf(row, "last_error");
    if (state === "parked" && error === "PermanentError:proof") return [];
    const what = state === "waiting" ? "stuck" : "differing";
    const sentence = `inbox: ${key} is ${state} (${error}), expected parked`;
    return [{ what, about: key, sentence }];
  });
}

function deliveryFindings({ deliveries: { failed, taken } }: Wave): Finding[] {
  return [
    ...failed.map(({ eventId, last }) => ({
      what: "stuck" as const,
      about: eventId,
      sentence: `delivery: ${eventId} was given up after ${last.status} ${last.outcome}`,
    })),
    ...[...taken]
      .filter(([, answers]) => answers.length > 1)
      .map(([key, answers]) => ({
        what: "doubled" as const,
        about: key,
        sentence: `delivery: ${key} was answered ${answers.join(" and ")}`,
      })),
  ];
}

function processedIn({ receipts }: ExpectedBooks) {
  return receipts.filter(({ outcome }) => outcome === "processed");
}

function eventOf(key: string): string {
  return key.slice(key.indexOf(" ") + 1);
}

function textOf(row: object, column: string): string {
  return String(new Map<string, unknown>(Object.entries(row)).get(column));
}

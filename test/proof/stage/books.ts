/**
 * All tables as one value that two runs can be compared by: ids that the database gives and times
 * are left aside, and so are counters, which say how often something was tried.
 */
import type { Client } from "pg";

/** Each row of each table, by its table. */
export type Books = ReadonlyMap<string, readonly Row[]>;

export type Row = Readonly<Record<string, unknown>>;

/** How often something was tried or came again: a disturbance may add to it. */
const COUNTERS = ["attempts", "fence", "duplicates", "failures"] as const;

/** To ids that a disturbed run may give anew. */
const REFERENCES = ["run_id"] as const;

const INBOX = "webhook_inbox";
/** What names a row of a table whose rows change: another state of it is no second row. */
const NAMED_BY: Readonly<Record<string, readonly string[]>> = {
  outbox: ["aggregate_type", "aggregate_id", "event_type"],
  call_journal: ["key"],
};

export interface Verdict {
  /** Rows that should be there and are not, or have not come to that state. */
  readonly lost: readonly string[];
  /** Rows that are there and should not be. */
  readonly doubled: readonly string[];
  /** Events that nothing settled. */
  readonly stuck: readonly string[];
  /** Rows of the inbox that came to another end. */
  readonly differing: readonly string[];
}

/** Each one statement about every table of the database. */
export interface Statements {
  readonly read: string;
  readonly clear: string;
  /** Keeps what the tables hold now. */
  readonly keep: string;
  /** Makes the tables hold what was kept, and nothing else. */
  readonly restore: string;
}

export async function statementsFor(client: Client): Promise<Statements> {
  const { rows } = await client.query<{ table: string; ids: string[]; times: string[] }>(`
    select table_name as "table",
      coalesce(array_agg(column_name::text) filter (where is_identity = 'YES'), '{}') as ids,
      coalesce(array_agg(column_name::text) filter (where data_type like 'timestamp%'), '{}') as times
    from information_schema.columns where table_schema = 'public' group by 1 order by 1`);
  const read = rows.map(({ table, ids, times }) => {
    const known = times.map((time) => `'${time}', ${time} is not null`).join(", ");
    const left = [...ids, ...REFERENCES, ...times].map((column) => `'${column}'`).join(", ");
    return `select '${table}' as "table",
      (to_jsonb(t) - array[${left}]::text[]) || jsonb_build_object(${known}) as row from ${table} t`;
  });
  const tables = rows.map(({ table }) => table);
  const each = (statement: (table: string) => string): string => tables.map(statement).join("; ");
  const empty = each((table) => `delete from ${table}`);
  const anew = rows.flatMap(({ table, ids }) =>
    ids.map((id) => `select setval(pg_get_serial_sequence('${table}', '${id}'), 1, false)`),
  );
  return {
    read: `select "table", row from (${read.join(" union all ")}) as everything order by 1, row::text`,
    // Ids begin anew, so that what refers to one is the same in two runs.
    clear: inOneGo([empty, ...anew].join("; ")),
    keep: `drop schema if exists kept cascade; create schema kept;
      ${each((table) => `create table kept.${table} as select * from ${table}`)}`,
    restore: inOneGo(
      `${empty}; ${each((table) => `insert into ${table} overriding system value select * from kept.${table}`)}`,
    ),
  };
}

/** Without its triggers, a reference need not be emptied before what it refers to. */
function inOneGo(text: string): string {
  return `begin; set local session_replication_role = replica; ${text}; commit`;
}

export async function readBooks(client: Client, { read }: Statements): Promise<Books> {
  const { rows } = await client.query<{ table: string; row: Row }>(read);
  const books = new Map<string, Row[]>();
  for (const { table, row } of rows) books.set(table, [...(books.get(table) ?? []), row]);
  return books;
}

/**
 * What a disturbed run lost, doubled and left undone, compared with one that was not disturbed.
 * An attempt more is no difference: a disturbance may cost one.
 */
export function compareBooks(expected: Books, actual: Books): Verdict {
  const tables = [...new Set([...expected.keys(), ...actual.keys()])].filter((t) => t !== INBOX);
  const lost: string[] = [];
  const doubled: string[] = [];
  for (const table of tables) {
    const wanted = expected.get(table) ?? [];
    const found = actual.get(table) ?? [];
    const [missing, others] = [
      without(wanted, found, withoutCounters),
      without(found, wanted, withoutCounters),
    ];
    lost.push(...missing.map((row) => `${table} ${withoutCounters(row)}`));
    const second = without(others, missing, (row) => nameOf(table, row));
    doubled.push(...second.map((row) => `${table} ${withoutCounters(row)}`));
  }
  const wanted = expected.get(INBOX) ?? [];
  const found = actual.get(INBOX) ?? [];
  const stuck = found.filter(isUnsettled).map(keyOf);
  return {
    lost,
    doubled,
    stuck,
    differing: [
      ...without(wanted, found, withoutCounters).map((row) => `missing ${withoutCounters(row)}`),
      ...without(found, wanted, withoutCounters).map((row) => `found ${withoutCounters(row)}`),
      ...costlyAttempts(wanted, found),
    ],
  };
}

export function isSound({ lost, doubled, stuck, differing }: Verdict): boolean {
  return lost.length + doubled.length + stuck.length + differing.length === 0;
}

export function isUnsettled(row: Row): boolean {
  return row["processed_at"] === false && row["parked_at"] === false;
}

function costlyAttempts(expected: readonly Row[], actual: readonly Row[]): string[] {
  const allowed = new Map(expected.map((row) => [keyOf(row), Number(row["attempts"]) + 1]));
  return actual.flatMap((row) => {
    const attempts = Number(row["attempts"]);
    const most = allowed.get(keyOf(row)) ?? attempts;
    return attempts > most ? [`${keyOf(row)} took ${attempts} attempts, not ${most} at most`] : [];
  });
}

function keyOf(row: Row): string {
  return `${String(row["endpoint"])} ${String(row["event_id"])}`;
}

function withoutCounters(row: Row): string {
  return JSON.stringify(row, (key, value: unknown) => (isCounter(key) ? undefined : value));
}

function isCounter(key: string): boolean {
  return COUNTERS.some((counter) => counter === key);
}

function nameOf(table: string, row: Row): string {
  const columns = NAMED_BY[table];
  return columns ? JSON.stringify(columns.map((column) => row[column])) : withoutCounters(row);
}

/** Those of `all` that `others` has not, each as often as that is so. */
function without<T>(all: readonly T[], others: readonly T[], name: (one: T) => string): T[] {
  const left = others.map(name);
  return all.filter((one) => {
    const index = left.indexOf(name(one));
    if (index >= 0) left.splice(index, 1);
    return index < 0;
  });
}

/**
 * All tables as one value that two runs can be compared by: ids that the database gives and times
 * are left aside, and so are counters, which say how often something was tried.
 */
import type { Client } from "pg";

/** Each row of each table, by its table. */
export type Books = ReadonlyMap<string, readonly Row[]>;

export type Row = Readonly<Record<string, unknown>>;

/** How often something was tried or came again: a disturbance may add to it. */
const COUNTERS = ["attempts", "fence", "duplicates"] as const;

const INBOX = "webhook_inbox";

export interface Verdict {
  /** Rows that should be there and are not. */
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
    const left = [...ids, ...times].map((column) => `'${column}'`).join(", ");
    return `select '${table}' as "table",
      (to_jsonb(t) - array[${left}]::text[]) || jsonb_build_object(${known}) as row from ${table} t`;
  });
  const tables = rows.map(({ table }) => table);
  const each = (statement: (table: string) => string): string => tables.map(statement).join("; ");
  const empty = each((table) => `delete from ${table}`);
  return {
    read: `select "table", row from (${read.join(" union all ")}) as everything order by 1, row::text`,
    clear: inOneGo(empty),
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
    const wanted = (expected.get(table) ?? []).map((row) => `${table} ${withoutCounters(row)}`);
    const found = (actual.get(table) ?? []).map((row) => `${table} ${withoutCounters(row)}`);
    lost.push(...without(wanted, found));
    doubled.push(...without(found, wanted));
  }
  const wanted = (expected.get(INBOX) ?? []).map(withoutCounters);
  const found = (actual.get(INBOX) ?? []).map(withoutCounters);
  const stuck = (actual.get(INBOX) ?? []).filter(isUnsettled).map(keyOf);
  return {
    lost,
    doubled,
    stuck,
    differing: [
      ...without(wanted, found).map((row) => `missing ${row}`),
      ...without(found, wanted).map((row) => `found ${row}`),
      ...costlyAttempts(expected.get(INBOX) ?? [], actual.get(INBOX) ?? []),
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

/** Those of `all` that `others` has not, each as often as that is so. */
function without(all: readonly string[], others: readonly string[]): string[] {
  const left = [...others];
  return all.filter((one) => {
    const index = left.indexOf(one);
    if (index >= 0) left.splice(index, 1);
    return index < 0;
  });
}

/**
 * A slice of a contestant's drain: it starts on a fresh copy of its backlog, warms up, is watched for
 * some seconds and is stopped. Afterwards the books must agree with themselves.
 *
 * The rate is that of the transactions that began within the slice, by the database's clock: each
 * effect's `outbox.created_at` is the start of its transaction, so nothing is asked meanwhile but
 * now and then whether the backlog ran out.
 */
import { once } from "node:events";
import { setTimeout as pause } from "node:timers/promises";
import type { Client } from "pg";
import { dropDatabase } from "../../local/databases.ts";
import { type Bench, withClient } from "../bench.ts";

/** How the effects are written; `prepared`: in one prepared statement. */
export type Handler = "textbook" | "one statement" | "prepared" | "set-based" | "ours";

export interface Contestant {
  readonly name: string;
  readonly handler: Handler;
  readonly completion: "atomic" | "not atomic" | "floor";
  readonly backlog: Backlog;
  /** How many are done by its own books, in SQL; null: those may lag behind the effects. */
  readonly countDone: string | null;
  /** Works the backlog off until it is told to stop. */
  readonly run: (databaseUrl: string, stop: AbortSignal) => Promise<void>;
}

/** Contestants with the same backlog share the database that theirs are copied from. */
export interface Backlog {
  readonly name: string;
  /** Fills a migrated database. */
  readonly fill: (databaseUrl: string, events: number) => Promise<void>;
}

export interface Slice {
  readonly events: number;
  readonly warmUpSeconds: number;
  readonly seconds: number;
}

const START_TIMEOUT_MS = 90_000;
const POLL_MS = 200;

/** @returns a database to copy: filled, vacuumed, and nobody is connected to it. */
export async function makeBacklog(bench: Bench, backlog: Backlog, events: number): Promise<string> {
  const url = await bench.database(backlog.name);
  await backlog.fill(url, events);
  await withClient(url, vacuumFilled);
  return backlog.name;
}

/**
 * Not the business tables: Postgres would believe that they are empty for as long as a session keeps
 * its plans, and check each foreign key by reading all of a table that has grown meanwhile.
 */
async function vacuumFilled(client: Client): Promise<void> {
  const { rows } = await client.query<{ name: string }>(
    `select format('%I.%I', schemaname, relname) as name from pg_stat_user_tables
     where n_live_tup > 0`,
  );
  for (const { name } of rows) await client.query(`vacuum (analyze) ${name}`);
}

/**
 * @param template the contestant's backlog.
 * @returns effects per second.
 */
export async function runSlice(
  bench: Bench,
  contestant: Contestant,
  template: string,
  slice: Slice,
): Promise<number> {
  const database = `${template}_slice`;
  const url = await bench.database(database, template);
  try {
    return await withClient(url, async (client) => {
      await watch(client, contestant, url, slice);
      await checkBooks(client, contestant);
      return readRate(client, slice);
    });
  } finally {
    await dropDatabase(bench.cluster, database);
  }
}

export async function untilStopped(stop: AbortSignal): Promise<void> {
  if (!stop.aborted) await once(stop, "abort");
}

async function watch(
  client: Client,
  contestant: Contestant,
  url: string,
  { events, warmUpSeconds, seconds }: Slice,
): Promise<void> {
  const stop = new AbortController();
  let hasEnded = false;
  const running = contestant.run(url, stop.signal).finally(() => (hasEnded = true));
  const watching = (async () => {
    await until(START_TIMEOUT_MS, async () => hasEnded || (await countEffects(client)) > 0);
    await until(
      (warmUpSeconds + seconds) * 1_000,
      async () => hasEnded || (await countEffects(client)) >= events,
    );
  })();
  // Whichever fails, the contestant is told to stop before its database goes.
  const [watched, run] = await Promise.allSettled([watching.finally(() => stop.abort()), running]);
  if (run.status === "rejected") throw run.reason;
  if (watched.status === "rejected") throw watched.reason;
}

async function until(timeoutMs: number, isOver: () => Promise<boolean>): Promise<void> {
  const deadline = performance.now() + timeoutMs;
  while (performance.now() < deadline && !(await isOver())) await pause(POLL_MS);
}

async function countEffects(client: Client): Promise<number> {
  return readNumber(client, "select count(*) from ledger_entries");
}

/** @throws when effects are missing, came twice, or are not what the contestant believes. */
async function checkBooks(client: Client, { name, countDone }: Contestant): Promise<void> {
  const { rows } = await client.query<Record<string, number>>(
    `select
       (select count(*)::int from ledger_entries) as entries,
       (select count(*)::int from outbox where event_type = 'InvoicePaymentBooked') as messages,
       (select count(*)::int from invoices where status = 'paid') as paid
       ${countDone === null ? "" : `, (${countDone}) as done`}`,
  );
  const books = rows[0] ?? {};
  if (new Set(Object.values(books)).size !== 1 || books["entries"] === 0) {
    throw new Error(`The books of ${name} are wrong: ${JSON.stringify(books)}`);
  }
}

/**
 * A backlog that ran out ends the slice at the last start: what was not there could not be begun.
 * Whoever stops before that is charged for all of it.
 */
async function readRate(
  client: Client,
  { events, warmUpSeconds, seconds }: Slice,
): Promise<number> {
  const rate = await readNumber(
    client,
    `with ends as (
       select min(created_at) + $1 * interval '1 second' as warm,
         min(created_at) + ($1 + $2) * interval '1 second' as over,
         case when count(*) >= $3 then max(created_at) end as ran_out
       from outbox
     )
     select count(*) / extract(epoch from least(over, ran_out) - warm) from ends, outbox
     where created_at >= warm and created_at < least(over, ran_out) group by warm, over, ran_out`,
    [warmUpSeconds, seconds, events],
  );
  if (!Number.isFinite(rate))
    throw new Error("The backlog ran out while warming up: use more events.");
  return rate;
}

async function readNumber(client: Client, text: string, values: unknown[] = []): Promise<number> {
  const { rows } = await client.query<unknown[]>({ text, values, rowMode: "array" });
  return Number(rows[0]?.[0] ?? Number.NaN);
}

/** Brings a database to the newest migration, from a machine that has the migrations' folder. */
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { readMigrationFiles } from "drizzle-orm/migrator";
import { Client } from "pg";
import journal from "../../drizzle/meta/_journal.json" with { type: "json" };
import { sqlStateOf } from "./postgres-errors.ts";
import { CannotConnect } from "./unavailable.ts";

const FOLDER = join(fileURLToPath(import.meta.url), "../../../drizzle");
/** A database of Neon's that sleeps takes some seconds to wake. */
const CONNECT_WITHIN_MS = 30_000;
/** Any number will do, where nobody else takes the same one. */
const LOCK = 7_264_118_340;
/** drizzle-orm's, so that its own tools can go on from here. */
const APPLIED = "drizzle.__drizzle_migrations";

/** What Postgres says of syntax, names and privileges; of anything else, it may repeat data. */
const OF_NAMES_ALONE = /^42/;
/** A schema, table, column or other object that is there already. */
const IS_THERE = /^(?:42P06|42P07|42701|42710)$/;

/** One could not be applied, and so none was; the cause is Postgres's error. */
export class MigrationFailed extends Error {
  override readonly name = "MigrationFailed";

  constructor(when: number, sqlState: string, cause: unknown) {
    const tag = journal.entries.find((entry) => entry.when === when)?.tag;
    const said =
      cause instanceof Error && OF_NAMES_ALONE.test(sqlState) ? `: ${cause.message}` : "";
    const byHand = IS_THERE.test(sqlState)
      ? `\nIf all of it is there, applied by hand, say so: ` +
        `insert into ${APPLIED} (hash, created_at) values ('by hand', ${when})`
      : "";
    super(
      `drizzle/${tag}.sql cannot be applied, so none was (SQLSTATE ${sqlState}${said})${byHand}`,
      { cause },
    );
  }
}

/**
 * All migrations that are missing, in one transaction; whoever migrates at the same time waits.
 *
 * drizzle-orm's own migrator takes those that are dated after the last one applied, and is silent about
 * all others: the older of two that were merged, or all of ours where another project's are newer.
 *
 * @param url as `migrationUrl` makes it.
 * @throws DatabaseUnavailable, MigrationFailed
 */
export async function migrateDatabase(url: string): Promise<void> {
  const client = await open(url).catch((cause: unknown) => {
    throw new CannotConnect(cause);
  });
  try {
    await applyMissing(client);
  } finally {
    await client.end().catch(() => undefined);
  }
}

async function applyMissing(client: Client): Promise<void> {
  const migrations = readMigrationFiles({ migrationsFolder: FOLDER });
  await begin(client);
  const applied = await readApplied(client);
  for (const { sql, hash, folderMillis: when } of migrations) {
    if (applied.has(when)) continue;
    try {
      for (const statement of sql) await client.query(statement);
    } catch (error) {
      const sqlState = sqlStateOf(error);
      throw sqlState === null ? error : new MigrationFailed(when, sqlState, error);
    }
    await client.query(`insert into ${APPLIED} (hash, created_at) values ($1, $2)`, [hash, when]);
  }
  await client.query("commit");
}

async function begin(client: Client): Promise<void> {
  // What others committed while we waited for the lock must be seen behind it.
  await client.query("begin isolation level read committed");
  await client.query(`select pg_advisory_xact_lock(${LOCK})`);
}

/** By their times, in epoch milliseconds. Makes their table where there is none. */
async function readApplied(client: Client): Promise<ReadonlySet<number>> {
  const asked = await client.query<{ there: boolean }>(
    `select to_regclass('${APPLIED}') is not null as there`,
  );
  // Both would ask for the privilege to make one, also where it is there.
  if (asked.rows[0]?.there !== true) {
    await client.query("create schema if not exists drizzle");
    await client.query(
      `create table ${APPLIED} (id serial primary key, hash text not null, created_at bigint)`,
    );
    // To stay, whatever becomes of the migrations: a person may have to write into it.
    await client.query("commit");
    await begin(client);
  }
  const { rows } = await client.query<{ created_at: string }>(`select created_at from ${APPLIED}`);
  return new Set(rows.map((row) => Number(row.created_at)));
}

/** Making one reads the files that the URL names. */
async function open(url: string): Promise<Client> {
  const client = new Client({
    connectionString: url,
    application_name: "stripe-inbox-migrations",
    connectionTimeoutMillis: CONNECT_WITHIN_MS,
  });
  client.on("error", () => undefined);
  try {
    await client.connect();
    return client;
  } catch (error) {
    await client.end().catch(() => undefined);
    throw error;
  }
}

/** Brings a database to the newest migration, from a machine that has the migrations' folder. */
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { readMigrationFiles } from "drizzle-orm/migrator";
import { Client } from "pg";
import { CannotConnect } from "./unavailable.ts";

const FOLDER = join(fileURLToPath(import.meta.url), "../../../drizzle");
/** A database of Neon's that sleeps takes some seconds to wake. */
const CONNECT_WITHIN_MS = 30_000;

/** Any number will do, where nobody else takes the same one. */
const LOCK = 7_264_118_340;

/**
 * All migrations that are missing, in one transaction; whoever migrates at the same time waits.
 *
 * drizzle-orm's own migrator takes those that are dated after the last one applied, and is silent about
 * all others: the older of two that were merged, or all of ours where another project's are newer.
 *
 * @param url as `migrationUrl` makes it.
 * @throws DatabaseUnavailable
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
  await client.query("begin");
  await client.query(`select pg_advisory_xact_lock(${LOCK})`);
  // As drizzle-orm has them: its own tools go on from here.
  await client.query("create schema if not exists drizzle");
  await client.query(`create table if not exists drizzle.__drizzle_migrations
    (id serial primary key, hash text not null, created_at bigint)`);
  const { rows } = await client.query<{ created_at: string }>(
    "select created_at from drizzle.__drizzle_migrations",
  );
  const applied = new Set(rows.map((row) => Number(row.created_at)));
  for (const { sql, hash, folderMillis } of migrations) {
    if (applied.has(folderMillis)) continue;
    for (const statement of sql) await client.query(statement);
    await client.query(
      "insert into drizzle.__drizzle_migrations (hash, created_at) values ($1, $2)",
      [hash, folderMillis],
    );
  }
  await client.query("commit");
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

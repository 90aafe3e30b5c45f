/** Brings a database to the newest migration, from a machine that has the migrations' folder. */
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { drizzle } from "drizzle-orm/node-postgres";
import { migrate } from "drizzle-orm/node-postgres/migrator";
import { Client } from "pg";
import { CannotConnect } from "./unavailable.ts";

const FOLDER = join(fileURLToPath(import.meta.url), "../../../drizzle");
/** A database of Neon's that sleeps takes some seconds to wake. */
const CONNECT_WITHIN_MS = 30_000;

/**
 * All migrations that are missing, in one transaction.
 *
 * @param url as `migrationUrl` makes it.
 * @throws DatabaseUnavailable
 */
export async function migrateDatabase(url: string): Promise<void> {
  const client = await open(url).catch((cause: unknown) => {
    throw new CannotConnect(cause);
  });
  try {
    await migrate(drizzle(client), { migrationsFolder: FOLDER });
  } finally {
    await client.end().catch(() => undefined);
  }
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

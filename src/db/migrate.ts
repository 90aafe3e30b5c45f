/** Brings a database to the newest migration, from a machine that has the migrations' folder. */
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { drizzle } from "drizzle-orm/node-postgres";
import { migrate } from "drizzle-orm/node-postgres/migrator";
import { Client } from "pg";
import { DatabaseUnavailable } from "./connect.ts";

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
  const client = new Client({
    connectionString: url,
    application_name: "stripe-inbox-migrations",
    connectionTimeoutMillis: CONNECT_WITHIN_MS,
  });
  client.on("error", () => undefined);
  try {
    await client.connect().catch((cause: unknown) => {
      throw new DatabaseUnavailable(`it cannot be connected to${why(cause)}`, { cause });
    });
    await migrate(drizzle(client), { migrationsFolder: FOLDER });
  } finally {
    await client.end().catch(() => undefined);
  }
}

/** What the machine, or TLS, says of it; what Postgres says is a SQLSTATE. */
function why(error: unknown): string {
  if (!(error instanceof Error)) return "";
  if (error.message.includes("does not support SSL")) {
    return ": it offers no TLS, and sslmode asks for it";
  }
  const code = "code" in error ? String(error.code) : "";
  return /^[A-Z][A-Z_]+$/.test(code) ? ` (${code})` : "";
}

/**
 * `npm run db:migrate`: brings the database that DATABASE_URL names to the newest migration, a Neon
 * one or any other. drizzle-kit, which makes the migrations, ends without a word when it cannot.
 */
import { migrateDatabase, MigrationFailed } from "../db/migrate.ts";
import { hostOf, migrationUrl } from "../db/migration-url.ts";
import { complain, Usage } from "./command.ts";

const HELP = `Brings a database to the newest migration.

  DATABASE_URL="postgres://user:password@host/database" npm run db:migrate

Of a pooled host name of Neon's, the direct one is taken. What is special in names and password is
percent-encoded.`;

async function main(): Promise<void> {
  const given = process.env["DATABASE_URL"] ?? "";
  if (given === "") throw new Usage("DATABASE_URL says which database to migrate; it is not set.");
  const url = migrationUrl(given);
  if (url === null) {
    throw new Usage("DATABASE_URL says which database to migrate; it is no connection string.");
  }
  await migrateDatabase(url);
  console.log(`${hostOf(new URL(url))}: all migrations are applied.`);
}

try {
  await main();
} catch (error) {
  if (error instanceof MigrationFailed) console.error(error.message);
  else complain(error, HELP);
  process.exitCode = 1;
}

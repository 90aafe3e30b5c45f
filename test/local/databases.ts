/** Databases within a cluster: made, migrated, and copied from a template. */
import { Client, escapeIdentifier } from "pg";
import { migrateDatabase } from "../../src/db/migrate.ts";
import type { Cluster } from "./postgres.ts";

/** Makes a database, empty or as a copy of `template`, and returns its connection string. */
export async function createDatabase(
  cluster: Pick<Cluster, "url">,
  name: string,
  template = "template1",
): Promise<string> {
  await administrate(
    cluster,
    `create database ${escapeIdentifier(name)} template ${escapeIdentifier(template)}`,
  );
  return cluster.url(name);
}

/** The same, unless it is there already. */
export async function ensureDatabase(cluster: Cluster, name: string): Promise<string> {
  const exists = await withClient(cluster.url("postgres"), async (client) => {
    const { rowCount } = await client.query("select from pg_database where datname = $1", [name]);
    return rowCount === 1;
  });
  return exists ? cluster.url(name) : createDatabase(cluster, name);
}

/** Makes a migrated database to copy others from; a copy takes a fraction of the migrations' time. */
export async function createTemplate(
  cluster: Pick<Cluster, "url">,
  name = "stripe_inbox_template",
): Promise<string> {
  await migrateDatabase(await createDatabase(cluster, name));
  // A database that someone is connected to cannot be copied.
  await administrate(
    cluster,
    `alter database ${escapeIdentifier(name)} with allow_connections false`,
  );
  return name;
}

/** Removes a database, and cuts whoever is still connected to it. */
export async function dropDatabase(cluster: Pick<Cluster, "url">, name: string): Promise<void> {
  await administrate(cluster, `drop database if exists ${escapeIdentifier(name)} with (force)`);
}

async function administrate(cluster: Pick<Cluster, "url">, statement: string): Promise<void> {
  await withClient(cluster.url("postgres"), (client) => client.query(statement));
}

async function withClient<T>(
  connectionString: string,
  use: (client: Client) => Promise<T>,
): Promise<T> {
  const client = new Client({ connectionString, application_name: "simulated stripe" });
  await client.connect();
  try {
    return await use(client);
  } finally {
    await client.end();
  }
}

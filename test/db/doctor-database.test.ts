/** The doctor: whether the database is there, migrated, and ours to write in. */
import { expect, inject, test } from "vitest";
import journal from "../../drizzle/meta/_journal.json" with { type: "json" };
import { migrateDatabase } from "../../src/db/migrate.ts";
import { query } from "../worker/testbed.ts";
import {
  aDeployment,
  type Complaints,
  type Deployment,
  fails,
  hasRun,
  skips,
  warns,
} from "./diagnosing.ts";

type Database = Deployment["inbox"] & {
  /** What the database itself is called. */
  readonly name: string;
};

/** What is said once this has been done to the database of a healthy deployment. */
async function after(damage: (database: Database) => Promise<unknown>): Promise<Complaints> {
  const { inbox, complaints } = await aDeployment();
  await damage({ ...inbox, name: new URL(inbox.databaseUrl).pathname.slice(1) });
  return complaints();
}

/** A database that is not a copy of the migrated one. */
async function anotherDatabase(options = ""): Promise<string> {
  const name = `test_${crypto.randomUUID().replaceAll("-", "")}`;
  await query(inject("postgresUrl"), `create database ${name} template template0 ${options}`);
  const url = new URL(inject("postgresUrl"));
  url.pathname = `/${name}`;
  return url.href;
}

const MIGRATE = "npm run db:migrate";
const NOT_THERE = skips("the tables are not there");

test.each([
  ["that nobody listens for", "postgres://postgres@127.0.0.1:1/x", "it cannot be connected to"],
  ["with no such name", "/no_such_database", "(SQLSTATE 3D000)"],
])("a database %s is named, and nothing that is in it is spoken of", async (_, at, found) => {
  const connectionString = new URL(at, inject("postgresUrl")).href;
  const { complaints, examine } = await aDeployment({ env: { HYPERDRIVE: { connectionString } } });
  expect(await complaints()).toEqual({ database: fails(found, "the connection string") });
  const { findings } = await examine();
  expect(findings.map(({ check }) => check)).not.toContain("migrations");
});

test("a role that may not log in is named by its SQLSTATE, and not by its name", async () => {
  const { inbox, complaints, api } = await aDeployment();
  const role = await aRole(inbox, "nologin");
  const examined = await aDeployment({
    databaseUrl: inbox.databaseUrl,
    route: () => as(role, inbox.databaseUrl),
  });
  expect(await complaints()).toEqual({});
  const { database, ...others } = await examined.complaints();
  expect(others).toEqual({});
  expect(database).toEqual(fails("(SQLSTATE 28000)", "the connection string"));
  expect(JSON.stringify(database)).not.toContain(role);
  expect(api.calls).toEqual([]);
});

test("a migration that is not applied is named by its file", async () => {
  const said = await after(({ rows }) =>
    rows(`delete from drizzle.__drizzle_migrations
      where created_at = (select max(created_at) from drizzle.__drizzle_migrations)`),
  );
  const newest = journal.entries.at(-1)?.tag;
  expect(newest).toMatch(/^\d{4}_\w+$/);
  expect(said).toEqual({ migrations: fails(`not applied: ${newest}`, MIGRATE) });
});

test("a database without any of them is named for that alone", async () => {
  const { complaints } = await aDeployment({ databaseUrl: await anotherDatabase() });
  expect(await complaints()).toEqual({
    migrations: fails("none is applied", MIGRATE),
    privileges: skips("tables are not there yet"),
    "query caching": NOT_THERE,
    crons: NOT_THERE,
  });
});

test("a database ahead of the deployment is named", async () => {
  const said = await after(({ rows }) =>
    rows(`insert into drizzle.__drizzle_migrations (hash, created_at)
      values ('of a later version', 9999999999999)`),
  );
  expect(said).toEqual({ migrations: warns("does not know", "Deploy the version") });
});

test("tables that are gone, though every migration is applied, are named", async () => {
  const said = await after(({ rows }) => rows("drop table operator_actions, heartbeats"));
  expect(said).toEqual({
    privileges: fails("no such table: heartbeats, operator_actions", MIGRATE),
    "query caching": NOT_THERE,
    crons: NOT_THERE,
  });
});

let roles = 0;

/** Made in the whole cluster, with all that the receiver needs. */
async function aRole({ rows }: Deployment["inbox"], login = "login"): Promise<string> {
  const role = `doctor_test_${process.pid}_${++roles}`;
  await rows(`create role ${role} ${login}`);
  await rows(`grant usage on schema public, drizzle to ${role}`);
  await rows(`grant select on all tables in schema drizzle to ${role}`);
  await rows(`grant select, insert, update, delete on all tables in schema public to ${role}`);
  return role;
}

function as(role: string, databaseUrl: string): string {
  const url = new URL(databaseUrl);
  url.username = role;
  return url.href;
}

/** What is said to a role of which this has been taken. */
async function without(...revoked: readonly string[]): Promise<Complaints> {
  const { inbox } = await aDeployment();
  const role = await aRole(inbox);
  for (const what of revoked) await inbox.rows(`revoke ${what} from ${role}`);
  const { databaseUrl } = inbox;
  return (await aDeployment({ databaseUrl, route: (url) => as(role, url) })).complaints();
}

test("a role that may read and write the tables, and no more, is nothing wrong", async () => {
  expect(await without()).toEqual({});
});

test("a table that the role may not write is named, with what it may not do there", async () => {
  expect(await without("insert, update on ledger_entries")).toEqual({
    privileges: fails("lacks insert on ledger_entries, update on ledger_entries", "grant select"),
  });
});

test("a role that may nothing is named for that alone", async () => {
  expect(await without("all on all tables in schema public", "usage on schema drizzle")).toEqual({
    migrations: skips("this role may not read drizzle"),
    privileges: fails("delete on webhook_inbox", "grant select"),
    "query caching": skips("see privileges"),
    crons: skips("see privileges"),
  });
});

test("row-level security that refuses what privileges allow is not passed over", async () => {
  const { inbox } = await aDeployment();
  const role = await aRole(inbox);
  await inbox.rows("alter table heartbeats enable row level security");
  await inbox.rows(`create policy reads on heartbeats for select to ${role} using (true)`);
  const { databaseUrl } = inbox;
  const { complaints } = await aDeployment({ databaseUrl, route: (url) => as(role, url) });
  expect(await complaints()).toEqual({
    "query caching": fails("Postgres refuses it (SQLSTATE 42501)", "errcodes"),
  });
});

test("a database in which nothing can be written is named for that alone", async () => {
  const said = await after(({ rows, name }) =>
    rows(`alter database ${name} set default_transaction_read_only = on`),
  );
  expect(said).toEqual({
    transactions: fails("they are read-only", "Connect to the primary"),
    "query caching": skips("nothing can be written"),
  });
});

test("an encoding that cannot hold every text is named", async () => {
  const databaseUrl = await anotherDatabase("encoding 'SQL_ASCII' locale 'C'");
  await migrateDatabase(databaseUrl);
  const { inbox, complaints } = await aDeployment({ databaseUrl });
  await hasRun(inbox);
  expect(await complaints()).toEqual({ encoding: fails("SQL_ASCII", "encoding UTF8") });
});

/** The database's clock, as whoever asks it by its usual name reads it. */
async function setClock({ rows, name }: Database, ahead: string): Promise<void> {
  await rows("create schema skewed");
  await rows(`create function skewed.clock_timestamp() returns timestamptz language sql
    as $$ select pg_catalog.clock_timestamp() + interval '${ahead}' $$`);
  await rows(`alter database ${name} set search_path = skewed, pg_catalog, public`);
}

test.each([
  ["10 minutes", fails("ahead of the Worker", "by NTP")],
  ["-10 minutes", fails("behind the Worker", "by NTP")],
  ["10 seconds", warns("ahead of the Worker", "by NTP")],
])("a clock that is off by %s is named", async (ahead, said) => {
  expect(await after((database) => setClock(database, ahead))).toEqual({ clocks: said });
});

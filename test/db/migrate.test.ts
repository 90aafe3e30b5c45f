/** `npm run db:migrate`, as it is typed: which database it takes, and what it says of one it cannot. */
import { expect, inject, test } from "vitest";
import { migrationUrl } from "../../src/db/migration-url.ts";
import { createDatabase } from "../local/databases.ts";
import { startProxy } from "../local/proxy.ts";
import { query } from "../worker/testbed.ts";
import { type Ran, runCliWith } from "./cli.ts";
import { refusalOfNeon } from "./server-messages.ts";

/** Recognisable, in order not to be found in what it says. */
const ODD = "pw-unheard-of";

const migrate = (databaseUrl: string): Promise<Ran> =>
  runCliWith({ DATABASE_URL: databaseUrl }, "migrate");

function urlOf(database: string): string {
  const url = new URL(inject("postgresUrl"));
  url.pathname = `/${database}`;
  return url.href;
}

async function emptyDatabase(): Promise<URL> {
  const name = `migrate_${crypto.randomUUID().replaceAll("-", "")}`;
  return new URL(await createDatabase({ url: urlOf }, name));
}

const neonUrl = (host: string, mode: string): string =>
  `postgresql://a:p%40-pooler.b@${host}/d?sslmode=${mode}&channel_binding=require`;

test("an empty database is migrated, and once is enough", async () => {
  const url = await emptyDatabase();
  url.search = "?sslmode=disable&channel_binding=require";
  for (const run of [1, 2])
    expect(await migrate(url.href), `run ${run}`).toMatchObject({ status: 0 });
  expect(await query(url.href.replace(url.search, ""), "select from webhook_inbox")).toEqual([]);
});

test("a password that is right is taken; one that is wrong is said to be, and not said", async () => {
  const guarded = new URL(inject("guardedUrls").scram);
  guarded.pathname = (await emptyDatabase()).pathname;
  expect(await migrate(guarded.href)).toMatchObject({ status: 0 });
  guarded.password = ODD;
  const { status, text } = await migrate(guarded.href);
  expect(status).toBe(1);
  expect(text).toContain("The password is wrong");
  expect(text).not.toContain(ODD);
});

test("TLS that is asked for and not to be had is an error, and no connection without it", async () => {
  const url = await emptyDatabase();
  url.password = ODD;
  url.search = "?sslmode=require&channel_binding=require";
  const { status, text } = await migrate(url.href);
  expect(status).toBe(1);
  expect(text).toContain("it offers no TLS");
  expect(text).not.toContain(ODD);
});

test.each(["", ODD, `postgres://a:${ODD}@127.0.0.1:port/b`, `postgres://a:${ODD}%@127.0.0.1/b`])(
  "`%s` is refused, and not repeated",
  async (databaseUrl) => {
    const { status, text } = await migrate(databaseUrl);
    expect(status).toBe(1);
    expect(text).toContain("DATABASE_URL says which database to migrate");
    expect(text).not.toContain(ODD);
  },
);

test("of what Neon's proxy refuses, it says what to do", async () => {
  const refuse = refusalOfNeon(`password authentication failed for user '${ODD}'`);
  await using proxy = await startProxy(inject("postgresUrl"), { fate: refuse });
  const { status, text } = await migrate(proxy.route(inject("postgresUrl")));
  expect(status).toBe(1);
  expect(text).toContain("The password is wrong");
  expect(text).toContain("XX000");
  expect(text).not.toContain(ODD);
});

test.each(["migrate", "requeue"])(
  "%s says that a certificate cannot be read, and not which",
  async (program) => {
    const url = await emptyDatabase();
    url.search = `?sslmode=verify-full&sslcert=/${ODD}`;
    const flags = program === "requeue" ? ["--id", "evt_1", "--yes", "--why", "a test"] : [];
    const { status, text } = await runCliWith({ DATABASE_URL: url.href }, program, ...flags);
    expect(status).toBe(1);
    expect(text).toContain("the file of sslrootcert, sslcert or sslkey cannot be read (ENOENT)");
    expect(text).not.toContain(ODD);
  },
);

test.each(["migrate", "requeue"])("%s takes the certificates of the system", async (program) => {
  const url = await emptyDatabase();
  url.search = "?sslmode=require&sslrootcert=system";
  const flags = program === "requeue" ? ["--id", "evt_1", "--yes", "--why", "a test"] : [];
  const { status, text } = await runCliWith({ DATABASE_URL: url.href }, program, ...flags);
  // The Postgres here speaks no TLS at all: what is asked for is understood, and never done without.
  expect(status).toBe(1);
  expect(text).toContain("it offers no TLS");
});

test.each([
  ["?sslmode=verify-full&sslrootcert=system", "?sslmode=verify-full"],
  ["?sslrootcert=system", "?sslmode=verify-full"],
  ["?sslmode=require&sslrootcert=/a.pem", "?sslmode=verify-full&sslrootcert=%2Fa.pem"],
])("of %s, %s is taken", (given, taken) => {
  expect(migrationUrl(`postgres://a:b@c.test/d${given}`)).toBe(`postgres://a:b@c.test/d${taken}`);
});

test("a Unix socket is taken, and said not to be there", async () => {
  expect(migrationUrl("postgres:///b?host=/tmp")).toBe("postgres:///b?host=/tmp");
  expect(migrationUrl("postgres:///b?host=")).toBeNull();
  expect(migrationUrl("postgres:///b")).toBeNull();
  const { status, text } = await migrate(`postgres:///b?host=/${ODD}&user=a`);
  expect(status).toBe(1);
  expect(text).toContain("it cannot be connected to (ENOENT)");
  expect(text).not.toContain(ODD);
});

test.each([
  ["ep-x-1-pooler.eu-central-1.aws.neon.tech", "ep-x-1.eu-central-1.aws.neon.tech"],
  ["ep-x-1-pooler.c-2.eu-central-1.aws.neon.tech", "ep-x-1.c-2.eu-central-1.aws.neon.tech"],
  ["ep-x-1.eu-central-1.aws.neon.tech", "ep-x-1.eu-central-1.aws.neon.tech"],
  ["db-pooler.example.com", "db-pooler.example.com"],
])("of %s, %s is taken", (given, taken) => {
  expect(migrationUrl(` ${neonUrl(given, "require")}\n`)).toBe(neonUrl(taken, "verify-full"));
});

test("a database that is not there is said not to be, and why", async () => {
  const { status, text } = await migrate(`postgres://a:${ODD}@127.0.0.1:1/b`);
  expect(status).toBe(1);
  expect(text).toContain("it cannot be connected to (ECONNREFUSED)");
  expect(text).not.toContain(ODD);
});

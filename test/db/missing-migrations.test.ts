/** Migrations that are missing, in whatever order they came to be so: all are applied, or none is. */
import { expect, inject, test } from "vitest";
import journal from "../../drizzle/meta/_journal.json" with { type: "json" };
import { migrateDatabase, MigrationFailed } from "../../src/db/migrate.ts";
import { createDatabase } from "../local/databases.ts";
import { query } from "../worker/testbed.ts";
import { runCliWith } from "./cli.ts";

/** Far in the future. */
const NEWER = 4_102_444_800_000;
const APPLIED = "drizzle.__drizzle_migrations";
const [, second] = journal.entries;

function urlOf(database: string): string {
  const url = new URL(inject("postgresUrl"));
  url.pathname = `/${database}`;
  return url.href;
}

async function openDatabase() {
  const name = `missing_${crypto.randomUUID().replaceAll("-", "")}`;
  const url = await createDatabase({ url: urlOf }, name);
  return {
    url,
    name,
    rows: (statement: string) => query(url, statement),
    migrate: (databaseUrl = url) => runCliWith({ DATABASE_URL: databaseUrl }, "migrate"),
    applied: () => query(url, `select created_at::float8 as when from ${APPLIED} order by 1`),
  };
}

const ALL = journal.entries.map(({ when }) => ({ when }));

test("all are applied where another project's are newer", async () => {
  const { rows, migrate, applied } = await openDatabase();
  await rows("create schema drizzle");
  await rows(
    `create table ${APPLIED} (id serial primary key, hash text not null, created_at bigint)`,
  );
  await rows(`insert into ${APPLIED} (hash, created_at) values ('another', ${NEWER})`);
  expect(await migrate()).toMatchObject({ status: 0 });
  expect(await rows("select from webhook_inbox")).toEqual([]);
  expect(await applied()).toEqual([...ALL, { when: NEWER }]);
});

test("one is applied that came behind a newer one of ours, and no other again", async () => {
  const { url, rows, migrate, applied } = await openDatabase();
  await migrateDatabase(url);
  await rows("alter table webhook_inbox reset (toast_tuple_target)");
  const { when } = journal.entries.find(({ tag }) => tag === "0005_fast") ?? { when: 0 };
  await rows(`delete from ${APPLIED} where created_at = ${when}`);
  expect(await migrate()).toMatchObject({ status: 0 });
  expect(
    await rows("select reloptions from pg_class where oid = 'webhook_inbox'::regclass"),
  ).toEqual([{ reloptions: expect.arrayContaining(["toast_tuple_target=128"]) }]);
  expect(await applied()).toEqual(ALL);
});

test("one that cannot be applied leaves none behind, and says which, and how it is skipped", async () => {
  const { rows, migrate, applied } = await openDatabase();
  await rows("create view sweep_runs as select 1 as one");
  const { status, text } = await migrate();
  expect(status).toBe(1);
  expect(text).toContain(
    'drizzle/0003_sweeps.sql cannot be applied, so none was (SQLSTATE 42P07: relation "sweep_runs" already exists)',
  );
  expect(await rows("select to_regclass('webhook_inbox') as inbox")).toEqual([{ inbox: null }]);
  expect(await applied()).toEqual([]);
});

test("what may repeat data is not repeated, and what may be over soon is not to be skipped", () => {
  const { message } = new MigrationFailed(second?.when ?? 0, "23505", new Error("Key (a)=(Ann)"));
  expect(message).toContain("0001_retention_and_stats.sql cannot be applied");
  expect(message).not.toMatch(/Ann|insert into/);
});

test.each([
  ["is not on record", `delete from ${APPLIED} where created_at = ${second?.when}`],
  ["lost its record with all others", "drop schema drizzle cascade"],
])("one that was applied and %s is skipped as the command says", async (_, forget) => {
  const { url, rows, migrate, applied } = await openDatabase();
  await migrateDatabase(url);
  await rows(forget);
  let ran = await migrate();
  expect(ran.status).toBe(1);
  for (let turn = 0; turn < journal.entries.length && ran.status !== 0; turn++) {
    await rows(/insert into .+/.exec(ran.text)?.[0] ?? "");
    ran = await migrate();
  }
  expect(ran.status).toBe(0);
  expect(await applied()).toEqual(ALL);
});

test.each(["read committed", "repeatable read"])(
  "two at the same time take turns where transactions begin as %s",
  async (isolation) => {
    const { url, name, rows, applied } = await openDatabase();
    await rows(`alter database ${name} set default_transaction_isolation = '${isolation}'`);
    const both = [migrateDatabase(url), migrateDatabase(url)];
    expect(await Promise.allSettled(both)).toMatchObject(both.map(() => ({ status: "fulfilled" })));
    expect(await applied()).toEqual(ALL);
  },
);

test("where nothing is missing, a role that may read is enough", async () => {
  const { url, name, rows, migrate } = await openDatabase();
  await migrateDatabase(url);
  const reader = new URL(url);
  reader.username = `reader_of_${name}`;
  await rows(`create role ${reader.username} login`);
  expect((await migrate(reader.href)).text).toContain("42501");
  await rows(`grant usage on schema drizzle to ${reader.username}`);
  await rows(`grant select on ${APPLIED} to ${reader.username}`);
  expect(await migrate(reader.href)).toMatchObject({ status: 0 });
});

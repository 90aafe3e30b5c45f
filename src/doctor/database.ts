/** The database itself: whether it is as our migrations make it, and whether we may work in it. */
import { getTableName, is, sql } from "drizzle-orm";
import { PgTable } from "drizzle-orm/pg-core";
import journal from "../../drizzle/meta/_journal.json" with { type: "json" };
import type { Connection } from "../db/connect.ts";
import { sqlStateOf } from "../db/postgres-errors.ts";
import { numberOf, textOf } from "../db/rows.ts";
import * as schema from "../db/schema.ts";
import { fail, type Finding, ok, skipped, warn } from "./finding.ts";
import { hasFailed, lookAt, read } from "./looking.ts";

const NO_SUCH_TABLE = /^(42P01|3F000)$/;
const NOT_ALLOWED = "42501";
const CLOCK_WARNS_MS = 2_000;
const CLOCK_FAILS_MS = 60_000;

/** Adds to the findings. @throws DatabaseUnavailable */
export async function examineDatabase(db: Connection, findings: Finding[]): Promise<void> {
  await lookAt(db, findings, "migrations", () => migrations(db));
  await lookAt(db, findings, "privileges", (earlier) => privileges(db, earlier));
  await lookAt(db, findings, "encoding", () => encoding(db));
  await lookAt(db, findings, "clocks", () => clocks(db));
}

async function migrations(db: Connection): Promise<Finding> {
  const check = "migrations";
  const migrate = "DATABASE_URL=… npm run db:migrate";
  try {
    const rows = await read(db, sql`select created_at from drizzle.__drizzle_migrations`);
    const applied = new Set(rows.map((row) => numberOf(row, "created_at")));
    const missing = journal.entries.filter(({ when }) => !applied.has(when));
    if (missing.length > 0) {
      const tags = missing.map(({ tag }) => tag).join(", ");
      return fail(check, `not applied: ${tags}`, migrate);
    }
    if (applied.size > journal.entries.length) {
      return warn(
        check,
        "the database has migrations that this deployment does not know",
        "Deploy the version that they belong to, unless they are another project's",
      );
    }
    return ok(check, `all ${journal.entries.length} are applied`);
  } catch (error) {
    const state = sqlStateOf(error);
    if (state === NOT_ALLOWED) {
      return skipped(check, "this role may not read drizzle.__drizzle_migrations");
    }
    if (state === null || !NO_SUCH_TABLE.test(state)) throw error;
    return fail(check, "none is applied", migrate);
  }
}

const TABLES = Object.values<unknown>(schema)
  .filter((table) => is(table, PgTable))
  .map(getTableName);
const PRIVILEGES = ["select", "insert", "update", "delete"] as const;

async function privileges(db: Connection, earlier: readonly Finding[]): Promise<Finding> {
  const check = "privileges";
  const wanted = TABLES.flatMap((table) =>
    PRIVILEGES.map((privilege) => sql`(${table}::text, ${privilege}::text)`),
  );
  const rows = await read(
    db,
    sql`select name, privilege, to_regclass(name) is null as missing
      from (values ${sql.join(wanted, sql`, `)}) as wanted (name, privilege)
      where to_regclass(name) is null
        or not has_table_privilege(to_regclass(name), privilege)`,
  );
  const absent = [
    ...new Set(rows.filter((row) => row["missing"]).map((row) => textOf(row, "name"))),
  ];
  if (absent.length > 0) {
    if (hasFailed(earlier, "migrations")) return skipped(check, "tables are not there yet");
    return fail(check, `no such table: ${absent.join(", ")}`, "npm run db:migrate");
  }
  if (rows.length === 0) return ok(check, `all on ${TABLES.length} tables`);
  const lacking = rows.map((row) => `${textOf(row, "privilege")} on ${textOf(row, "name")}`);
  return fail(
    check,
    `this role lacks ${lacking.slice(0, 4).join(", ")}${lacking.length > 4 ? " …" : ""}`,
    "grant select, insert, update, delete on all tables in schema public to it",
  );
}

async function encoding(db: Connection): Promise<Finding> {
  const [row] = await read(db, sql`select current_setting('server_encoding') as encoding`);
  const found = row ? textOf(row, "encoding") : "unknown";
  return found === "UTF8"
    ? ok("encoding", found)
    : fail("encoding", found, "Make the database with encoding UTF8: JSON needs it");
}

async function clocks(db: Connection): Promise<Finding> {
  const before = Date.now();
  const [row] = await read(
    db,
    sql`select (extract(epoch from clock_timestamp()) * 1000)::float8 as ms`,
  );
  const after = Date.now();
  const offMs = row ? numberOf(row, "ms") - (before + after) / 2 : Number.NaN;
  const sure = Math.abs(offMs) - (after - before) / 2;
  const found = `the database is ${Math.abs(offMs / 1_000).toFixed(1)} s ${offMs < 0 ? "behind" : "ahead of"} the Worker`;
  const todo = "Set the database's clock by NTP: leases and ages are told by it";
  if (sure > CLOCK_FAILS_MS) return fail("clocks", found, todo);
  return sure > CLOCK_WARNS_MS ? warn("clocks", found, todo) : ok("clocks", found);
}

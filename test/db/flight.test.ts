/** Statements that share a Sync: what one that fails means to the others, and who hears of it. */
import { setImmediate } from "node:timers/promises";
import { sql } from "drizzle-orm";
import { Connection as DriverConnection } from "pg";
import { expect, onTestFinished, test } from "vitest";
import { connect, type Connection, type Statement } from "../../src/db/connect.ts";
import { Flight } from "../../src/db/flight.ts";
import { sqlStateOf } from "../../src/db/postgres-errors.ts";
import { openTestbed } from "../worker/testbed.ts";

/** Outside of a transaction, unless the statements make one. */
async function openNotes({ prepare = false, pipeline = true } = {}) {
  const { databaseUrl, rows } = await openTestbed();
  await rows("create table notes (id int primary key, text text)");
  await rows(`alter table notes add constraint once unique (text) deferrable initially deferred`);
  const db = await connect(
    { connectionString: databaseUrl, pipeline, prepare },
    new AbortController().signal,
  );
  onTestFinished(() => db.close());
  const send = (...statements: readonly Statement[]) => settled(db, statements);
  return { send, notes: () => rows("select id, text from notes order by id") };
}

/** The command's tag of each, or its SQLSTATE. */
async function settled(db: Connection, statements: readonly Statement[]): Promise<unknown[]> {
  const results = await Promise.allSettled(db.send(statements));
  return results.map((result) =>
    result.status === "fulfilled" ? result.value.command : sqlStateOf(result.reason),
  );
}

const insert = (id: number, text: string): Statement => ({
  text: "insert into notes values ($1, $2)",
  values: [String(id), text],
  keepsPlan: true,
});
const nonsense: Statement = { text: "select 1 / $1::int", values: ["0"], keepsPlan: true };

test("each statement has its own rows, in their order", async () => {
  const { databaseUrl } = await openTestbed();
  const db = await connect(
    { connectionString: databaseUrl, pipeline: true },
    new AbortController().signal,
  );
  onTestFinished(() => db.close());
  const statements = [1, 2, 3].map((n) =>
    db.compile(sql`select generate_series(1, ${n}::int) as n`),
  );
  const results = await Promise.all(db.send(statements));
  expect(results.map(({ rows }) => rows.map((row) => row["n"]))).toEqual([[1], [1, 2], [1, 2, 3]]);
});

test("of what is behind a statement that fails nothing is done, and what is before it is undone", async () => {
  const { send, notes } = await openNotes();
  expect(await send(insert(1, "a"), nonsense, insert(2, "b"))).toEqual([
    "INSERT",
    "22012",
    "22012",
  ]);
  expect(await notes()).toEqual([]);
  expect(await send(insert(3, "c"))).toEqual(["INSERT"]);
  expect(await notes()).toEqual([{ id: 3, text: "c" }]);
});

test("without pipelining, too, nothing is done of what is behind a statement that fails", async () => {
  const { send, notes } = await openNotes({ pipeline: false });
  expect(await send(insert(1, "a"), nonsense, insert(2, "b"))).toEqual([
    "INSERT",
    "22012",
    "22012",
  ]);
  expect(await notes()).toEqual([{ id: 1, text: "a" }]);
  expect(await send(insert(3, "c"))).toEqual(["INSERT"]);
});

test("one that fails as it is committed leaves nobody with an answer", async () => {
  const { send, notes } = await openNotes();
  expect(await send(insert(1, "same"), insert(2, "same"))).toEqual(["23505", "23505"]);
  expect(await notes()).toEqual([]);
});

test("in a transaction, COMMIT behind one that failed rolls back, and the next transaction begins", async () => {
  const { send, notes } = await openNotes();
  const [begin, commit] = [{ text: "begin" }, { text: "commit" }];
  const tags = await send(begin, insert(1, "a"), nonsense, commit, begin, insert(2, "b"), commit);
  expect(tags).toEqual(["BEGIN", "INSERT", "22012", "ROLLBACK", "BEGIN", "INSERT", "COMMIT"]);
  expect(await notes()).toEqual([{ id: 2, text: "b" }]);
});

test("a prepared statement that failed, or was never come to, works the next time", async () => {
  const { send, notes } = await openNotes({ prepare: true });
  expect(await send(nonsense, insert(1, "a"))).toEqual(["22012", "22012"]);
  expect(await send(nonsense)).toEqual(["22012"]);
  expect(await send(insert(1, "a"), insert(2, "b"))).toEqual(["INSERT", "INSERT"]);
  expect(await send(insert(2, "again"))).toEqual(["23505"]);
  expect(await send(insert(3, "c"))).toEqual(["INSERT"]);
  expect(await notes()).toHaveLength(3);
});

test("a flight whose socket breaks before anybody has its results is nobody's unhandled rejection", async () => {
  const unhandled: unknown[] = [];
  const note = (reason: unknown): void => void unhandled.push(reason);
  process.on("unhandledRejection", note);
  onTestFinished(() => void process.off("unhandledRejection", note));
  const flight = new Flight([{ text: "select 1", values: [] }]);
  flight.handleError(new Error("The socket is gone."), new DriverConnection());
  await setImmediate();
  expect(unhandled).toEqual([]);
  await expect(flight.results[0]).rejects.toThrow("The socket is gone.");
});

/** The instrument itself: what passes a disturbed conversation with Postgres, and what does not. */
import { Client } from "pg";
import { expect, inject, test } from "vitest";
import { query } from "../worker/testbed.ts";
import { createDatabase } from "./databases.ts";
import { type Fate, type Message, type ProxyOptions, startProxy } from "./proxy.ts";

const INSERT = "insert into marks values (1)";
const PATIENT = { timeout: 20_000 };
const OTHERS = `select from pg_stat_activity
  where datname = current_database() and pid <> pg_backend_pid()`;

function siblingUrl(database: string): string {
  return new URL(`/${database}`, inject("postgresUrl")).href;
}

/** One insert through a proxy; then, not through it, what came of that. */
async function insertThrough(options: ProxyOptions): Promise<{ ok: boolean; marks: unknown }> {
  const name = `proxy_${crypto.randomUUID().replaceAll("-", "")}`;
  const url = await createDatabase({ url: siblingUrl }, name);
  await query(url, "create table marks (mark int)");
  await using proxy = await startProxy(url, options);
  const ok = await query(proxy.route(url), INSERT).then(
    () => true,
    () => false,
  );
  await expect.poll(() => query(url, OTHERS), PATIENT).toEqual([]);
  const [row] = await query(url, "select count(*)::int as marks from marks");
  return { ok, marks: row?.["marks"] };
}

const isQuery = ({ from, type }: Message): boolean => from === "client" && type === "Q";
const isDone = ({ from, type }: Message): boolean => from === "server" && type === "C";
const at = (where: (message: Message) => boolean, fate: Fate): ProxyOptions => ({
  fate: (message) => (where(message) ? fate : "pass"),
});

test("undisturbed, everything passes, message by message", async () => {
  const seen: string[] = [];
  const fate = ({ connection, from, n, type }: Message): Fate => {
    if (from === "client") seen.push(`${connection} ${n} ${type}`);
    return "pass";
  };
  expect(await insertThrough({ fate })).toEqual({ ok: true, marks: 1 });
  expect(seen).toEqual(["1 1 startup", "1 2 Q", "1 3 X"]);
});

test.each([
  ["before a statement, it is not done", isQuery, "cut before", 0],
  ["after a statement, it is done", isQuery, "cut after", 1],
  ["before its answer, it is done", isDone, "cut before", 1],
  ["after its answer, it is done", isDone, "cut after", 1],
] as const)("cut %s, and the client is told nothing", async (_, where, fate, marks) => {
  expect(await insertThrough(at(where, fate))).toEqual({ ok: false, marks });
});

test("a message in the place of another is what the server gets", async () => {
  const text = Buffer.from(`${INSERT.replace("1", "1), (2")}\0`);
  const head = Buffer.from([0x51, 0, 0, 0, text.length + 4]);
  const instead = Buffer.concat([head, text]);
  expect(await insertThrough(at(isQuery, { instead }))).toEqual({ ok: true, marks: 2 });
});

test("a delay each way makes a round trip twice as long", async () => {
  await using proxy = await startProxy(inject("postgresUrl"), { delayMs: 50 });
  const client = new Client({ connectionString: proxy.route(inject("postgresUrl")) });
  await client.connect();
  const started = performance.now();
  await client.query("select 1");
  const ms = performance.now() - started;
  await client.end();
  expect(ms).toBeGreaterThan(98);
});

test("in a silence no answer passes, and the server does not hear that the client has gone", async () => {
  await using proxy = await startProxy(inject("postgresUrl"), at(isDone, "silence"));
  const application_name = `silent ${crypto.randomUUID()}`;
  const connectionString = proxy.route(inject("postgresUrl"));
  const client = new Client({ connectionString, application_name });
  client.on("error", () => undefined);
  await client.connect();
  const answer = client.query("begin").then(
    () => "answered",
    () => "given up",
  );
  const session = async (): Promise<unknown> => {
    const [row] = await query(
      inject("postgresUrl"),
      "select state from pg_stat_activity where application_name = $1",
      [application_name],
    );
    return row?.["state"];
  };
  await expect.poll(session, PATIENT).toBe("idle in transaction");
  await client.end();
  expect(await answer).toBe("given up");
  expect(await session()).toBe("idle in transaction");
  await proxy.close();
  await expect.poll(session, PATIENT).toBeUndefined();
});

/** Statements are prepared under names; whoever forgets or confuses names costs time, and no event. */
import { describe, expect, inject, test } from "vitest";
import type { Connection, Row } from "../../src/db/connect.ts";
import { openTestbed, query, type Testbed } from "../worker/testbed.ts";
import { manyWait } from "../worker/waiting.ts";
import { openBatcher, transactionsOf } from "./batched.ts";

const poolerPort = inject("poolerPort");
const OURS = "name like 'stripe_inbox_%'";

async function ask(db: Connection, text: string): Promise<readonly Row[]> {
  const [answer] = await Promise.all(db.send([{ text }]));
  return answer?.rows ?? [];
}

const prepared = (db: Connection): Promise<readonly Row[]> =>
  ask(
    db,
    `select name, statement, parameter_types::text[] as types
    from pg_prepared_statements where ${OURS} order by 1`,
  );

test("statements that come again are prepared once, and serve batch after batch", async () => {
  const inbox = await openTestbed();
  const batcher = await openBatcher(inbox);
  await manyWait(inbox, 3);
  await batcher.settleAll();
  const first = await prepared(batcher.db);
  expect(first.length).toBeGreaterThan(0);
  const events = await manyWait(inbox, 7);
  expect(await batcher.settleAll()).toMatchObject({ processed: 7, left: [] });
  expect(await transactionsOf(inbox, events)).toBe(1);
  expect(await prepared(batcher.db)).toEqual(first);
});

test("a name means the same statement on every connection, whatever it came to first", async () => {
  const inbox = await openTestbed();
  const [one, other] = [await openBatcher(inbox), await openBatcher(inbox)];
  await manyWait(inbox, 3);
  await one.settleAll();
  for (const claim of await claimsOf(inbox, other, 1)) await other.alone(claim);
  await manyWait(inbox, 3);
  await other.settleAll();
  const statements = new Map(
    (await prepared(one.db)).map(({ name, statement }) => [name, statement]),
  );
  const shared = (await prepared(other.db)).filter(({ name }) => statements.has(name));
  expect(shared.length).toBeGreaterThan(0);
  for (const { name, statement } of shared) expect(statement).toBe(statements.get(name));
});

/** What a pooler may do to whoever believes that a server stays theirs. */
const CONFUSION: Record<string, (inbox: Testbed, db: Connection) => Promise<unknown>> = {
  "a server that does not know the names": async (_, db) => ask(db, "deallocate all"),
  "a server that knows them already": async (inbox, db) => {
    const other = await openBatcher(inbox);
    await manyWait(inbox, 2);
    await other.settleAll();
    await ask(db, "deallocate all");
    for (const { name, statement, types } of await prepared(other.db)) {
      const list = Array.isArray(types) && types.length > 0 ? `(${types.join(", ")})` : "";
      await ask(db, `prepare ${String(name)} ${list} as ${String(statement)}`);
    }
  },
};

describe.each(Object.entries(CONFUSION))("on %s", (what, confuse) => {
  test.each(["together", "alone"] as const)(
    "events that are processed %s are processed at their first attempt, and nothing is prepared any more",
    async (how) => {
      const inbox = await openTestbed();
      const batcher = await openBatcher(inbox);
      const isNew = what.includes("already");
      if (!isNew) {
        await manyWait(inbox, 2);
        await batcher.settleAll();
        for (const claim of await claimsOf(inbox, batcher, 1)) await batcher.alone(claim);
      }
      await confuse(inbox, batcher.db);
      const { entries } = await inbox.books();
      const claims = await claimsOf(inbox, batcher, 4);
      if (how === "together")
        expect(await batcher.together(claims)).toMatchObject({ left: claims });
      for (const claim of claims) {
        expect(await batcher.alone(claim)).toEqual({ outcome: "processed" });
      }
      expect(await inbox.rows("select distinct attempts, last_error from webhook_inbox")).toEqual([
        { attempts: 1, last_error: null },
      ]);
      expect(await inbox.books()).toMatchObject({ entries: entries + 4, messages: entries + 4 });
      const before = await prepared(batcher.db);
      await manyWait(inbox, 3);
      expect(await batcher.settleAll()).toMatchObject({ processed: 3, left: [] });
      expect(await prepared(batcher.db)).toEqual(before);
    },
  );
});

async function claimsOf(
  inbox: Testbed,
  batcher: Awaited<ReturnType<typeof openBatcher>>,
  count: number,
) {
  await manyWait(inbox, count);
  return batcher.claimAll();
}

function throughPooler(databaseUrl: string): string {
  const url = new URL(databaseUrl);
  url.port = String(poolerPort);
  return url.href;
}

describe.skipIf(poolerPort === null)("through PgBouncer in transaction mode", () => {
  test.each([
    ["on", "on"],
    ["on", "off"],
    ["off", "on"],
  ])(
    "two ticks drain a backlog over shared servers with PREPARE=%s, PROCESS_BATCH=%s",
    async (PREPARE, PROCESS_BATCH) => {
      const inbox = await openTestbed({ route: throughPooler });
      await manyWait(inbox, 150);
      const env = { PREPARE, PROCESS_BATCH, CLAIM_BATCH: "5" };
      const ticks = await Promise.all([inbox.tick(env), inbox.tick(env)]);
      const sum = (what: "processed" | "failed" | "taken" | "unavailable"): number =>
        ticks.reduce((total, counts) => total + counts[what], 0);
      expect([sum("processed"), sum("failed"), sum("taken"), sum("unavailable")]).toEqual([
        150, 0, 0, 0,
      ]);
      expect(await inbox.books()).toEqual({
        inbox: 150,
        invoices: 150,
        entries: 150,
        messages: 150,
        discrepancies: 0,
      });
      expect(
        await inbox.rows("select distinct outcome, attempts, fence::int from webhook_inbox"),
      ).toEqual([{ outcome: "processed", attempts: 1, fence: 2 }]);
      const names = await query(
        throughPooler(inbox.databaseUrl),
        `select count(*)::int from pg_prepared_statements where ${OURS}`,
      );
      if (PREPARE === "off") expect(names).toEqual([{ count: 0 }]);
    },
  );
});

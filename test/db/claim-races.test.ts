/** Claimers never wait for one another and never take the same event, whoever comes when. */
import { describe, expect, test } from "vitest";
import type { Connection } from "../../src/db/connect.ts";
import * as transitions from "../../src/inbox/transitions.ts";
import { openTestbed } from "../worker/testbed.ts";
import { dueRows, LEASE_SECONDS, openConnection, openHolder, timePasses } from "./holders.ts";

const LIMIT = 3;
/** More than one claim takes, fewer than two. */
const DUE = 5;

describe("of two claimers, interleaved statement by statement in every order", () => {
  test.each(["commit", "rollback"] as const)("the first ends with %s", async (ending) => {
    const inbox = await openTestbed();
    await dueRows(inbox, DUE);
    const one = await openConnection(inbox.databaseUrl);
    const other = await openConnection(inbox.databaseUrl);
    const orders = interleavings("aaa", "bbb");
    expect(new Set(orders).size).toBe(20);
    for (const order of orders) {
      await inbox.rows("update webhook_inbox set attempts = 0");
      await timePasses(inbox);
      const a = claimByHand(one, ending);
      const b = claimByHand(other, "commit");
      for (const who of order) await (who === "a" ? a : b).next();

      // The first to claim gets all that it asks for, the second the rest, or what was given back.
      const aIsFirst = claimAt(order, "a") < claimAt(order, "b");
      const givenBack = ending === "rollback" && order.lastIndexOf("a") < claimAt(order, "b");
      expect(a.claimed, order).toHaveLength(aIsFirst ? LIMIT : DUE - LIMIT);
      expect(b.claimed, order).toHaveLength(aIsFirst && !givenBack ? DUE - LIMIT : LIMIT);
      if (!givenBack) expect(new Set([...a.claimed, ...b.claimed]).size, order).toBe(DUE);

      const kept = ending === "commit" ? [...a.claimed, ...b.claimed] : b.claimed;
      const rows = await inbox.rows("select event_id from webhook_inbox where attempts = 1");
      expect(new Set(rows.map((row) => row["event_id"])), order).toEqual(new Set(kept));
    }
  });
});

test("four claimers at once share two hundred events, each of them one claimer's", async () => {
  const inbox = await openTestbed();
  await dueRows(inbox, 200);
  const claimers = await Promise.all(Array.from({ length: 4 }, () => openHolder(inbox)));
  const shares = await Promise.all(
    claimers.map(async (claimer) => {
      const share: string[] = [];
      for (;;) {
        const claims = await claimer.claim(LIMIT);
        if (claims.length === 0) return share;
        share.push(...claims.map(({ eventId }) => eventId));
      }
    }),
  );
  expect(shares.flat()).toHaveLength(200);
  expect(new Set(shares.flat()).size).toBe(200);
  expect(await inbox.rows("select distinct attempts, fence::int from webhook_inbox")).toEqual([
    { attempts: 1, fence: 1 },
  ]);
});

/** A claim as three steps; one that waits for a lock fails. */
function claimByHand(db: Connection, ending: "commit" | "rollback") {
  const claimed: string[] = [];
  const framing = async (text: string) => void (await Promise.all(db.send([{ text }])));
  const claim = async () => {
    const [result] = db.send([db.compile(transitions.claimDue("fresh", LIMIT, LEASE_SECONDS))]);
    for (const row of (await result)?.rows ?? []) claimed.push(String(row["event_id"]));
  };
  const steps = [
    () =>
      framing("begin; set local lock_timeout = '1s'; set local stripe_inbox.transaction = 'open'"),
    claim,
    () => framing(ending),
  ];
  return { claimed, next: () => steps.shift()?.() };
}

/** Where in an order its second step is. */
const claimAt = (order: string, who: string) => order.indexOf(who, order.indexOf(who) + 1);

/** Every way to merge two sequences, each keeping its own order. */
function interleavings(a: string, b: string): string[] {
  if (a === "" || b === "") return [a + b];
  return [
    ...interleavings(a.slice(1), b).map((rest) => a.charAt(0) + rest),
    ...interleavings(a, b.slice(1)).map((rest) => b.charAt(0) + rest),
  ];
}

/** A tick processes what is due, once; what it cannot process costs nobody else anything. */
import { sql } from "drizzle-orm";
import { describe, expect, test } from "vitest";
import { billing, book, bookAfter, progress, raising } from "./disturbances.ts";
import { anInvoiceEvent, logLines, openTestbed, roadTo } from "./testbed.ts";
import { manyWait, states, waits } from "./waiting.ts";

test("an empty inbox is a tick with nothing to count, and one log line", async () => {
  const inbox = await openTestbed();
  const lines = await logLines(() => inbox.tick());
  expect(lines).toEqual([
    expect.objectContaining({ message: "tick", level: "info", processed: 0 }),
  ]);
});

test("more events than one claim takes are all processed by one tick", async () => {
  const inbox = await openTestbed();
  await manyWait(inbox, 25);
  expect(await inbox.tick({ CLAIM_BATCH: "4" })).toMatchObject({ processed: 25, failed: 0 });
  expect(await inbox.books()).toMatchObject({ entries: 25, messages: 25 });
});

test("what is leased or waits for its back-off is left alone; a second later it would not be", async () => {
  const inbox = await openTestbed();
  await waits(inbox, { attempts: 1, availableIn: 30 });
  await waits(inbox, { attempts: 1, lastError: "TypeError", availableIn: 30 });
  expect(await inbox.tick()).toMatchObject({ processed: 0 });
  await inbox.rows("update webhook_inbox set available_at = now()");
  expect(await inbox.tick()).toMatchObject({ processed: 2 });
});

test("a poisonous event costs itself alone", async () => {
  const poison = anInvoiceEvent();
  const endpoints = bookAfter((_, __, event) => {
    if (event.id === poison.id) throw new TypeError("It is poisonous.");
  });
  const inbox = await openTestbed({ endpoints });
  await manyWait(inbox, 2);
  await waits(inbox, { event: poison });
  await manyWait(inbox, 7);
  // Its back-off is random, and may end before the tick does.
  const { processed, failed } = await inbox.tick({ MAX_ATTEMPTS: "100" });
  expect(processed).toBe(9);
  expect(failed).toBeGreaterThan(0);
  expect(await states(inbox)).toEqual({ processed: 9, waiting: 1 });
  expect(await progress(inbox, poison.id)).toMatchObject({ last_error: "TypeError" });
});

describe("an event whose last attempt left no record", () => {
  test("is parked as crashed once its attempts are used up, and not before", async () => {
    const inbox = await openTestbed();
    const spent = await waits(inbox, { attempts: 3 });
    const last = await waits(inbox, { attempts: 2 });
    const leased = await waits(inbox, { attempts: 3, availableIn: 30 });
    expect(await inbox.tick({ MAX_ATTEMPTS: "3" })).toMatchObject({ crashed: 1, processed: 1 });
    expect(await progress(inbox, spent.id)).toMatchObject({ parked: true, last_error: "Crashed" });
    expect(await progress(inbox, last.id)).toMatchObject({ outcome: "processed", attempts: 3 });
    expect(await progress(inbox, leased.id)).toMatchObject({ parked: false, outcome: null });
    expect(await inbox.tick({ MAX_ATTEMPTS: "3" })).toMatchObject({ crashed: 0, processed: 0 });
  });

  test("is processed with nothing else under way, after all others", async () => {
    const order: string[] = [];
    let underWay = 0;
    let mostUnderWay = 0;
    const suspects = new Set<string>();
    const endpoints = billing({
      "invoice.paid": async (event, tx) => {
        underWay++;
        if (suspects.has(event.id)) mostUnderWay = Math.max(mostUnderWay, underWay);
        try {
          await tx.execute(sql`select pg_sleep(0.02)`);
        } finally {
          underWay--;
        }
        order.push(suspects.has(event.id) ? "suspect" : "fresh");
        return book(event, tx);
      },
    });
    const inbox = await openTestbed({ endpoints });
    for (const { id } of await manyWait(inbox, 4, { attempts: 1 })) suspects.add(id);
    await manyWait(inbox, 4);
    await manyWait(inbox, 4, { attempts: 1, lastError: "TypeError" });
    expect(await inbox.tick()).toMatchObject({ processed: 12 });
    expect(mostUnderWay).toBe(1);
    expect(order).toEqual([...Array(8).fill("fresh"), ...Array(4).fill("suspect")]);
  });
});

describe("the endpoint's rules are applied again", () => {
  test("an endpoint that is gone parks its events", async () => {
    const inbox = await openTestbed();
    const event = await waits(inbox, { endpoint: "gone" });
    expect(await inbox.tick()).toMatchObject({ needs_review: 1 });
    expect(await progress(inbox, event.id)).toMatchObject({
      parked: true,
      last_error: "PermanentError:endpoint_unknown",
    });
  });

  test.each([
    ["a handler that is gone", {}, "no_handler"],
    ["another livemode", { STRIPE_LIVEMODE: "true" }, "livemode"],
  ])("%s ignores them, with the reason", async (_, env, reason) => {
    const handlers = reason === "no_handler" ? {} : { "invoice.paid": book };
    const inbox = await openTestbed({ endpoints: billing(handlers) });
    await waits(inbox);
    expect(await inbox.tick(env)).toMatchObject({ ignored: 1 });
    expect(await inbox.rows("select outcome, ignored_reason from webhook_inbox")).toEqual([
      { outcome: "ignored", ignored_reason: reason },
    ]);
    expect(await inbox.books()).toMatchObject({ entries: 0 });
  });
});

test("two ticks at the same time share the work, and nothing is done twice", async () => {
  const calls: string[] = [];
  const endpoints = bookAfter(async (tx, _, event) => {
    await tx.execute(sql`select pg_sleep(0.01)`);
    calls.push(event.id);
  });
  const inbox = await openTestbed({ endpoints });
  await manyWait(inbox, 30);
  const env = { CLAIM_BATCH: "2", CONCURRENCY: "2" };
  const [one, other] = await Promise.all([inbox.tick(env), inbox.tick(env)]);
  expect(one.processed + other.processed).toBe(30);
  expect(new Set(calls).size).toBe(calls.length);
  expect(await inbox.books()).toMatchObject({ entries: 30, messages: 30 });
});

test("at the end of its budget a tick gives back what it did not come to", async () => {
  const endpoints = bookAfter((tx) => tx.execute(sql`select pg_sleep(0.4)`));
  const inbox = await openTestbed({ endpoints });
  await manyWait(inbox, 10);
  const counts = await inbox.tick({
    TICK_BUDGET_SECONDS: "1",
    CONCURRENCY: "1",
    CLAIM_BATCH: "10",
  });
  expect(counts.released).toBeGreaterThan(0);
  expect(counts.processed + counts.released).toBe(10);
  expect(
    await inbox.rows(`select distinct attempts, available_at <= now() as due from webhook_inbox
      where processed_at is null`),
  ).toEqual([{ attempts: 0, due: true }]);
  expect(await inbox.tick()).toMatchObject({ processed: counts.released });
});

test("trouble of the infrastructure never counts nor parks; trouble of ours does both", async () => {
  const trouble = anInvoiceEvent();
  const endpoints = bookAfter((tx, _, event) =>
    tx.execute(raising(event.id === trouble.id ? "53100" : "23514")),
  );
  const inbox = await openTestbed({ endpoints, env: { MAX_ATTEMPTS: "3" } });
  await waits(inbox, { event: trouble });
  const ours = await waits(inbox);
  for (let n = 0; n < 5; n++) {
    await inbox.rows("update webhook_inbox set available_at = now() where parked_at is null");
    await inbox.tick();
  }
  expect(await progress(inbox, trouble.id)).toMatchObject({ attempts: 0, parked: false });
  expect(await progress(inbox, ours.id)).toMatchObject({ attempts: 3, parked: true });
});

test("a database that is down ends the tick with one log line, and bad settings too", async () => {
  const inbox = await openTestbed();
  const dead = roadTo("postgres://postgres:unheard@127.0.0.1:1/postgres");
  expect(await logLines(() => inbox.tick(dead))).toEqual([
    expect.objectContaining({ level: "error", message: "tick", error: "DatabaseUnavailable" }),
  ]);
  expect(await logLines(() => inbox.tick({ LEASE_SECONDS: "5m" }))).toEqual([
    expect.objectContaining({ level: "error", message: "tick", error: "InvalidSetting" }),
  ]);
});

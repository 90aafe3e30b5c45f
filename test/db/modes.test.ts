/** Deploys change the mode, or break and mend the handlers, while events wait: each is booked once. */
import { describe, expect, test } from "vitest";
import type { Endpoints } from "../../src/endpoints.ts";
import { bookAfter, NOTHING_BOOKED, ONE_BOOKING, progress, tally } from "../worker/disturbances.ts";
import { anInvoiceEvent, openTestbed, type Testbed } from "../worker/testbed.ts";
import { states } from "../worker/waiting.ts";
import { openConnection, timePasses } from "./holders.ts";
import { requeueAll } from "./requeued.ts";

const SETTINGS = {
  sync: { RECEIVE_MODE: "sync" },
  async: { RECEIVE_MODE: "async" },
  "sync, paused": { RECEIVE_MODE: "sync", PROCESSING: "paused" },
  "async, paused": { RECEIVE_MODE: "async", PROCESSING: "paused" },
};
type Setting = keyof typeof SETTINGS;

const MENDED = bookAfter(() => undefined);
const BROKEN = bookAfter(() => Promise.reject(new TypeError("It fails for everything.")));

/** The next deploy over the same database. */
const deploy = (
  inbox: Testbed | null,
  setting: Setting,
  endpoints: Endpoints,
  env: Record<string, string> = {},
): Promise<Testbed> =>
  openTestbed({
    ...(inbox ? { databaseUrl: inbox.databaseUrl } : {}),
    endpoints,
    env: { ...SETTINGS[setting], ...env },
  });

const names: readonly Setting[] = ["sync", "async", "sync, paused", "async, paused"];
const changes = names.flatMap((from) =>
  names.filter((to) => to !== from).map((to) => [from, to] as const),
);

describe.each(changes)("from %s to %s, with an event waiting", (from, to) => {
  const paused = to.includes("paused");

  test("its redelivery is processed, or told that it waits; a tick finishes it once", async () => {
    const before = await deploy(null, from, BROKEN);
    const event = anInvoiceEvent();
    await before.deliver(event);
    expect(await states(before)).toEqual({ waiting: 1 });

    const after = await deploy(before, to, MENDED);
    const outcome = to === "sync" ? "processed" : "duplicate";
    expect(await after.deliver(event)).toMatchObject({ status: 200, outcome });
    await timePasses(after);
    const processed = to === "async" ? 1 : 0;
    expect(await after.tick()).toMatchObject({ processed, failed: 0 });
    expect(await after.books()).toEqual(paused ? NOTHING_BOOKED : ONE_BOOKING);

    const back = await deploy(after, from, MENDED);
    const again = await back.deliver(event);
    expect(again).toMatchObject({
      status: 200,
      outcome: paused && from === "sync" ? "processed" : "duplicate",
    });
    await timePasses(back);
    await back.tick({ PROCESSING: "on" });
    expect(await back.books()).toEqual(ONE_BOOKING);
  });
});

test("through every setting in turn, each with events of its own and all of those before, all are booked once", async () => {
  const turns: Setting[] = ["async", "sync, paused", "sync", "async, paused", "async", "sync"];
  const events: ReturnType<typeof anInvoiceEvent>[] = [];
  let inbox: Testbed | null = null;
  for (const setting of turns) {
    inbox = await deploy(inbox, setting, MENDED);
    events.push(anInvoiceEvent(), anInvoiceEvent());
    for (const event of events) expect(await inbox.deliver(event)).toMatchObject({ status: 200 });
    await timePasses(inbox);
    await inbox.tick();
    if (setting.includes("paused")) expect(await states(inbox)).toHaveProperty("waiting", 2);
    else expect(await states(inbox)).toEqual({ processed: events.length });
  }
  expect(await inbox?.books()).toMatchObject({ inbox: 12, entries: 12, messages: 12 });
});

test("the others are processed while a tick works off what async mode left, and none twice", async () => {
  const broken = await deploy(null, "async", BROKEN);
  const left = Array.from({ length: 20 }, () => anInvoiceEvent());
  for (const event of left) await broken.deliver(event);
  await timePasses(broken);
  const mended = await deploy(broken, "sync", MENDED);
  const fresh = Array.from({ length: 5 }, () => anInvoiceEvent());
  const [ticked, ...answers] = await Promise.all([
    mended.tick({ CLAIM_BATCH: "3", CONCURRENCY: "2" }),
    ...[...left, ...fresh].map((event) => mended.deliver(event)),
  ]);
  const { processed = 0, duplicate = 0, ...others } = tally(answers);
  expect(others).toEqual({});
  expect(processed + duplicate).toBe(25);
  expect(ticked).toMatchObject({ failed: 0, unavailable: 0, processed: 25 - processed });
  expect(await mended.books()).toMatchObject({ inbox: 25, entries: 25, messages: 25 });
});

test.each(["sync", "async"] as const)("a bad deploy in %s mode is survived", async (mode) => {
  const env = { MAX_ATTEMPTS: "2" };
  const good = await deploy(null, mode, MENDED, env);
  const [booked, parked, failed, stored] = Array.from({ length: 4 }, () => anInvoiceEvent());
  if (!booked || !parked || !failed || !stored) throw new Error("Bug! There are four.");
  await good.deliver(booked);

  const bad = await deploy(good, mode, BROKEN, env);
  await bad.deliver(parked);
  await timePasses(bad);
  expect(await bad.tick()).toMatchObject({ needs_review: 1 });
  await bad.deliver(failed);
  expect(await bad.deliver(booked)).toMatchObject({ outcome: "duplicate" });

  const paused = await deploy(bad, `${mode}, paused`, BROKEN, env);
  expect(await paused.deliver(stored)).toMatchObject({ status: 200, outcome: "stored" });
  expect(await paused.deliver(failed)).toMatchObject({ status: 200, outcome: "duplicate" });
  expect(await paused.deliver(parked)).toMatchObject({ status: 200, outcome: "needs_review" });
  await timePasses(paused);
  expect(await paused.tick()).toMatchObject({ processed: 0, failed: 0, crashed: 0 });
  expect(await states(paused)).toEqual({ processed: 1, waiting: 2, parked: 1 });
  expect(await progress(paused, failed.id)).toMatchObject({ attempts: 1 });
  expect(await progress(paused, stored.id)).toMatchObject({ attempts: 0 });

  const mended = await deploy(paused, mode, MENDED, env);
  expect(await mended.tick()).toMatchObject({ processed: 2 });
  const db = await openConnection(mended.databaseUrl);
  expect(await requeueAll(db, { reason: "TypeError" })).toBe(1);
  expect(await mended.tick()).toMatchObject({ processed: 1 });
  for (const event of [booked, parked, failed, stored]) {
    expect(await mended.deliver(event)).toMatchObject({ status: 200, outcome: "duplicate" });
  }
  expect(await states(mended)).toEqual({ processed: 4 });
  expect(await mended.books()).toMatchObject({ inbox: 4, invoices: 4, entries: 4, messages: 4 });
});

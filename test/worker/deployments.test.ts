/** One deployment follows another, as DEPLOY.md has it: what the one leaves, the next one books, once. */
import { expect, test } from "vitest";
import { billing, ONE_BOOKING } from "./disturbances.ts";
import { anOperator } from "./operator.ts";
import { anInvoiceEvent, openTestbed, type Testbed } from "./testbed.ts";
import { states } from "./waiting.ts";

const BROKEN = billing({
  "invoice.paid": () => {
    throw new TypeError("A bad deploy.");
  },
});

const PAUSED = { PROCESSING: "paused" };

/** The next deployment, on the same database. */
const after = (inbox: Testbed, options: Parameters<typeof openTestbed>[0] = {}): Promise<Testbed> =>
  openTestbed({ ...options, databaseUrl: inbox.databaseUrl });

/** Due now, whatever was waited for. */
const due = (inbox: Testbed) =>
  inbox.rows("update webhook_inbox set available_at = now() - interval '1 second'");

test("from async to sync: what was stored is booked by its redelivery, or by a tick", async () => {
  const before = await openTestbed({ env: { RECEIVE_MODE: "async", ...PAUSED } });
  const [again, never] = [anInvoiceEvent(), anInvoiceEvent()];
  for (const event of [again, never]) {
    expect(await before.deliver(event)).toMatchObject({ outcome: "stored" });
  }
  const inbox = await after(before, { env: { RECEIVE_MODE: "sync" } });
  expect(await inbox.deliver(again)).toMatchObject({ outcome: "processed" });
  expect(await inbox.tick()).toMatchObject({ processed: 1 });
  for (const event of [again, never]) {
    expect(await inbox.deliver(event)).toMatchObject({ outcome: "duplicate" });
  }
  expect(await inbox.books()).toMatchObject({ inbox: 2, entries: 2, messages: 2 });
});

test("from sync to async: what had failed is a duplicate that waits, and is booked by a tick", async () => {
  const before = await openTestbed({ endpoints: BROKEN });
  const event = anInvoiceEvent();
  expect(await before.deliver(event)).toMatchObject({ status: 500, outcome: "failed" });
  const inbox = await after(before, { env: { RECEIVE_MODE: "async" } });
  expect(await inbox.deliver(event)).toMatchObject({ status: 200, outcome: "duplicate" });
  await due(inbox);
  expect(await inbox.tick()).toMatchObject({ processed: 1 });
  expect(await inbox.books()).toEqual(ONE_BOOKING);
});

test("a bad deploy, the brake, the mended one: what failed, came meanwhile or was parked is booked once", async () => {
  const bad = await openTestbed({ endpoints: BROKEN, env: { MAX_ATTEMPTS: "2" } });
  const [failed, parked, meanwhile] = [anInvoiceEvent(), anInvoiceEvent(), anInvoiceEvent()];
  for (const event of [failed, parked, parked]) await bad.deliver(event);
  expect(await states(bad)).toEqual({ waiting: 1, parked: 1 });

  const braked = await after(bad, { endpoints: BROKEN, env: PAUSED });
  expect(await braked.deliver(meanwhile)).toMatchObject({ status: 200, outcome: "stored" });
  expect(await braked.deliver(failed)).toMatchObject({ status: 200, outcome: "duplicate" });
  await due(braked);
  expect(await braked.tick()).toMatchObject({ processed: 0, failed: 0 });

  const { inbox, send } = await anOperator({ databaseUrl: bad.databaseUrl });
  await due(inbox);
  expect(await inbox.tick()).toMatchObject({ processed: 2 });
  const asked = { reason: "TypeError", count: 1, why: "mended" };
  expect((await send("/ops/api/events/requeue", asked)).body).toMatchObject({ requeued: 1 });
  expect(await inbox.tick()).toMatchObject({ processed: 1 });
  for (const event of [failed, parked, meanwhile]) {
    expect(await inbox.deliver(event)).toMatchObject({ outcome: "duplicate" });
  }
  expect(await inbox.books()).toMatchObject({ inbox: 3, entries: 3, messages: 3 });
});

/** Whoever else holds a lock or takes our turn: an event is processed in the end, and never called done before. */
import { describe, expect, test } from "vitest";
import {
  bookAfter,
  deliverUntil,
  NOTHING_BOOKED,
  ONE_BOOKING,
  progress,
  raising,
  takeKey,
  tally,
  untilSomeoneWaits,
  whileAnother,
} from "../worker/disturbances.ts";
import { anInvoiceEvent, openTestbed, query } from "../worker/testbed.ts";
import { waits } from "../worker/waiting.ts";

const OPEN_INVOICE = "insert into invoices (id, status) values ('in_held', 'open')";
const HOLD_INVOICE = "select from invoices where id = 'in_held' for update";
const aPayment = () => anInvoiceEvent("invoice.paid", { id: "in_held" });

describe.each(["on", "off"])("with PIPELINE=%s", (PIPELINE) => {
  const env = { PIPELINE, RECEIVE_LOCK_TIMEOUT_MS: "200" };

  test("while another holds the event's key the answer is 500, and nothing is written", async () => {
    const inbox = await openTestbed({ env });
    const event = anInvoiceEvent();
    await whileAnother(inbox, async (other) => {
      await takeKey(other, event);
      expect(await inbox.deliver(event)).toMatchObject({ status: 500, outcome: "failed" });
    });
    expect(await inbox.books()).toEqual({ ...NOTHING_BOOKED, inbox: 0 });
    expect(await inbox.deliver(event)).toMatchObject({ status: 200, outcome: "processed" });
    expect(await inbox.books()).toEqual(ONE_BOOKING);
  });

  test("while another holds the invoice the failure is recorded, and never parks", async () => {
    const inbox = await openTestbed({ env: { ...env, MAX_ATTEMPTS: "1" } });
    await inbox.rows(OPEN_INVOICE);
    const event = aPayment();
    await whileAnother(inbox, async (other) => {
      await other.query(HOLD_INVOICE);
      for (let n = 0; n < 2; n++) {
        expect(await inbox.deliver(event)).toMatchObject({ status: 500, outcome: "failed" });
        expect(await progress(inbox, event.id)).toMatchObject({
          attempts: 0,
          last_error: "55P03",
          parked: false,
        });
      }
    });
    expect(await inbox.deliver(event)).toMatchObject({ status: 200, outcome: "processed" });
    expect(await inbox.books()).toEqual(ONE_BOOKING);
  });

  test("an invoice that is let go after one wait in vain is booked by the same delivery", async () => {
    const letGo = Promise.withResolvers<void>();
    const released = Promise.withResolvers<void>();
    const endpoints = bookAfter(async (_, call) => {
      if (call === 1) return;
      letGo.resolve();
      await released.promise;
    });
    const inbox = await openTestbed({ endpoints, env });
    await inbox.rows(OPEN_INVOICE);
    const event = aPayment();
    await whileAnother(inbox, async (other) => {
      await other.query(HOLD_INVOICE);
      const delivery = inbox.deliver(event);
      await letGo.promise;
      await other.query("rollback");
      released.resolve();
      expect(await delivery).toMatchObject({ status: 200, outcome: "processed" });
    });
    expect(await progress(inbox, event.id)).toMatchObject({ attempts: 1, last_error: null });
    expect(await inbox.books()).toEqual(ONE_BOOKING);
  });

  test("the victim of a deadlock is processed by the same delivery", async () => {
    let calls = 0;
    const endpoints = bookAfter((_, call) => (calls = call));
    const inbox = await openTestbed({ endpoints, env: { PIPELINE } });
    await inbox.rows(OPEN_INVOICE);
    const event = aPayment();
    await whileAnother(inbox, async (other) => {
      await other.query(HOLD_INVOICE);
      const delivery = inbox.deliver(event);
      // It holds the key and waits for the invoice. The other never looks for deadlocks in time.
      await other.query("set local deadlock_timeout = '30s'");
      await untilSomeoneWaits(inbox);
      await takeKey(other, event);
      await other.query("rollback");
      expect(await delivery).toMatchObject({ status: 200, outcome: "processed" });
    });
    // Its second try can meet the other's once more, before that is over.
    expect(calls).toBeGreaterThan(1);
    expect(await progress(inbox, event.id)).toMatchObject({ attempts: 1, last_error: null });
    expect(await inbox.books()).toEqual(ONE_BOOKING);
  });

  describe.each(["40001", "40P01", "55P03"])("a transaction that ends with %s", (state) => {
    test("once is tried again inside the delivery", async () => {
      const endpoints = bookAfter((tx, call) => call === 1 && tx.execute(raising(state)));
      const inbox = await openTestbed({ endpoints, env });
      const event = anInvoiceEvent();
      expect(await inbox.deliver(event)).toMatchObject({ status: 200, outcome: "processed" });
      expect(await progress(inbox, event.id)).toMatchObject({ attempts: 1, last_error: null });
      expect(await inbox.books()).toEqual(ONE_BOOKING);
    });

    test("every time is one failure on record, and the next delivery starts afresh", async () => {
      let mended = false;
      const endpoints = bookAfter((tx) => !mended && tx.execute(raising(state)));
      const inbox = await openTestbed({ endpoints, env });
      const event = anInvoiceEvent();
      expect(await inbox.deliver(event)).toMatchObject({ status: 500, outcome: "failed" });
      expect(await progress(inbox, event.id)).toMatchObject({ attempts: 0, last_error: state });
      expect(await inbox.books()).toEqual(NOTHING_BOOKED);
      mended = true;
      expect(await inbox.deliver(event)).toMatchObject({ status: 200, outcome: "processed" });
      expect(await inbox.books()).toEqual(ONE_BOOKING);
    });
  });
});

test.each(["on", "off"])(
  "a tick puts off the event of a held invoice, and books its neighbours, PROCESS_BATCH=%s",
  async (PROCESS_BATCH) => {
    let calls = 0;
    const endpoints = bookAfter((_, call) => (calls = call));
    const inbox = await openTestbed({ endpoints, env: { RECEIVE_MODE: "async" } });
    await inbox.rows(OPEN_INVOICE);
    const held = aPayment();
    for (const event of [held, anInvoiceEvent(), anInvoiceEvent()]) await waits(inbox, { event });
    await whileAnother(inbox, async (other) => {
      await other.query(HOLD_INVOICE);
      // One lane, lest two share the three, and one of them is left with nobody to be together with.
      const env = { PROCESS_BATCH, LOCK_TIMEOUT_MS: "200", CONCURRENCY: "1" };
      expect(await inbox.tick(env)).toMatchObject({ processed: 2, failed: 1 });
    });
    // Together, where that is tried, and apart. Another wait would be in vain as well.
    expect(calls).toBe(PROCESS_BATCH === "on" ? 6 : 3);
    expect(await progress(inbox, held.id)).toMatchObject({ attempts: 0, last_error: "55P03" });
    await inbox.rows("update webhook_inbox set available_at = now()");
    expect(await inbox.tick()).toMatchObject({ processed: 1 });
    expect(await inbox.books()).toMatchObject({ entries: 3, messages: 3 });
  },
);

test("fifty deliveries at once over five connections: some 5xx, no hang, nothing lost or doubled", async () => {
  const role = `few_${crypto.randomUUID().slice(0, 8)}`;
  const inbox = await openTestbed({
    route: (databaseUrl) => {
      const url = new URL(databaseUrl);
      url.username = role;
      return url.href;
    },
  });
  await query(inbox.databaseUrl, `create role ${role} login connection limit 5`);
  await query(
    inbox.databaseUrl,
    `grant select, insert, update on all tables in schema public to ${role}`,
  );
  const events = Array.from({ length: 50 }, () => anInvoiceEvent());
  const first = await Promise.all(events.map((event) => inbox.deliver(event)));
  const { processed = 0, unavailable = 0, ...others } = tally(first);
  expect(others).toEqual({});
  expect(processed + unavailable).toBe(50);
  // Otherwise the limit was none.
  expect(unavailable).toBeGreaterThan(0);
  expect(new Set(first.map(({ status }) => status))).toEqual(new Set([200, 503]));
  expect(await inbox.books()).toMatchObject({ entries: processed, messages: processed });

  await Promise.all(events.map((event) => deliverUntil(inbox, event, 200)));
  expect(await inbox.books()).toEqual({
    inbox: 50,
    invoices: 50,
    entries: 50,
    messages: 50,
    discrepancies: 0,
  });
});

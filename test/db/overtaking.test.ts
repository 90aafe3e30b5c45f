/** Two who are at work on one event at the same time: one of them books it, the other is told so. */
import { expect, inject, test } from "vitest";
import { startProxy } from "../local/proxy.ts";
import {
  bookAfter,
  NOTHING_BOOKED,
  ONE_BOOKING,
  progress,
  untilSomeoneWaits,
  whileAnother,
} from "../worker/disturbances.ts";
import { openTestbed } from "../worker/testbed.ts";
import { waits } from "../worker/waiting.ts";
import { openHolder, timePasses } from "./holders.ts";

const unreachable = bookAfter(() => expect.unreachable());

/** A handler that says when it was reached, and books once it is let go on, or fails. */
function aGate() {
  const reached = Promise.withResolvers<void>();
  const goOn = Promise.withResolvers<void>();
  const endpoints = bookAfter(() => {
    reached.resolve();
    return goOn.promise;
  });
  return { endpoints, reached: reached.promise, goOn: goOn.resolve, fail: goOn.reject };
}

test("a holder that stalls past its lease leaves the event to another, while that is at work and after", async () => {
  const inbox = await openTestbed();
  const event = await waits(inbox);
  const [stalling, other] = [await openHolder(inbox), await openHolder(inbox)];
  const stalled = await stalling.claimOne();
  await timePasses(inbox);
  const gate = aGate();
  const finishing = other.work(await other.claimOne(), gate.endpoints);
  await gate.reached;
  expect(await stalling.work(stalled, unreachable)).toEqual({ outcome: "taken" });
  gate.goOn();
  expect(await finishing).toEqual({ outcome: "processed" });
  expect(await stalling.work(stalled, unreachable)).toEqual({ outcome: "taken" });
  expect(await progress(inbox, event.id)).toMatchObject({ outcome: "processed", attempts: 2 });
  expect(await inbox.books()).toEqual(ONE_BOOKING);
});

test("a holder that stalls within its handler past its lease keeps the event, and is in nobody's way", async () => {
  const inbox = await openTestbed();
  const event = await waits(inbox);
  const holder = await openHolder(inbox);
  const gate = aGate();
  const claim = await holder.claimOne();
  await timePasses(inbox);
  const working = holder.work(claim, gate.endpoints);
  await gate.reached;
  // Claimed as the first one would be, and after it.
  await waits(inbox, { attempts: 1, availableIn: 0 });
  expect(await inbox.tick({ LOCK_TIMEOUT_MS: "500" })).toMatchObject({ processed: 1, taken: 0 });
  gate.goOn();
  expect(await working).toEqual({ outcome: "processed" });
  expect(await inbox.tick()).toMatchObject({ processed: 0 });
  expect(await progress(inbox, event.id)).toMatchObject({ outcome: "processed", attempts: 1 });
  expect(await inbox.books()).toMatchObject({ inbox: 2, entries: 2, messages: 2 });
});

test("a holder that waits in vain for a sync delivery at work has no failure to record once that is done", async () => {
  const gate = aGate();
  const inbox = await openTestbed({ endpoints: gate.endpoints });
  const event = await waits(inbox);
  const inVain = Promise.withResolvers<void>();
  await using proxy = await startProxy(inject("postgresUrl"), {
    fate: ({ from, type }) => {
      if (from === "server" && type === "E") inVain.resolve();
      return "pass";
    },
  });
  const databaseUrl = proxy.route(inbox.databaseUrl);
  const holder = await openHolder({ databaseUrl }, { lockTimeoutMs: 800 });
  const claim = await holder.claimOne();
  const delivery = inbox.deliver(event);
  await gate.reached;
  const working = holder.work(claim, unreachable);
  await inVain.promise;
  gate.goOn();
  expect(await delivery).toMatchObject({ status: 200, outcome: "processed" });
  expect(await working).toEqual({ outcome: "taken" });
  expect(await progress(inbox, event.id)).toMatchObject({ outcome: "processed", last_error: null });
  expect(await inbox.books()).toEqual(ONE_BOOKING);
  await holder.db.close();
});

test("a sync delivery of an event that its holder is booking waits, and is a duplicate", async () => {
  const inbox = await openTestbed();
  const event = await waits(inbox);
  const holder = await openHolder(inbox);
  const gate = aGate();
  const working = holder.work(await holder.claimOne(), gate.endpoints);
  await gate.reached;
  const delivery = inbox.deliver(event);
  await untilSomeoneWaits(inbox);
  gate.goOn();
  expect(await working).toEqual({ outcome: "processed" });
  expect(await delivery).toMatchObject({ status: 200, outcome: "duplicate" });
  expect(await progress(inbox, event.id)).toMatchObject({ attempts: 1, duplicates: 1 });
  expect(await inbox.books()).toEqual(ONE_BOOKING);
});

test("a sync delivery that is booking an event makes its holder wait, and find it settled", async () => {
  const gate = aGate();
  const inbox = await openTestbed({ endpoints: gate.endpoints });
  const event = await waits(inbox);
  const holder = await openHolder(inbox);
  const claim = await holder.claimOne();
  const delivery = inbox.deliver(event);
  await gate.reached;
  const working = holder.work(claim, unreachable);
  await untilSomeoneWaits(inbox);
  gate.goOn();
  expect(await delivery).toMatchObject({ status: 200, outcome: "processed" });
  expect(await working).toEqual({ outcome: "taken" });
  expect(await progress(inbox, event.id)).toMatchObject({ outcome: "processed", attempts: 2 });
  expect(await inbox.books()).toEqual(ONE_BOOKING);
});

test("a sync delivery that fails while the holder waits leaves one booking, or a failure on record", async () => {
  const gate = aGate();
  const inbox = await openTestbed({ endpoints: gate.endpoints });
  const event = await waits(inbox);
  const holder = await openHolder(inbox);
  const claim = await holder.claimOne();
  const delivery = inbox.deliver(event);
  await gate.reached;
  const working = holder.work(
    claim,
    bookAfter(() => undefined),
  );
  await untilSomeoneWaits(inbox);
  gate.fail(new TypeError("It fails."));
  const both = [(await delivery).outcome, (await working).outcome];
  expect([
    ["failed", "taken"],
    ["duplicate", "processed"],
  ]).toContainEqual(both);
  expect(await inbox.books()).toEqual(both[1] === "processed" ? ONE_BOOKING : NOTHING_BOOKED);
});

test("an operator who sets an event back while its holder is booking it waits, and is not in time", async () => {
  const inbox = await openTestbed();
  const event = await waits(inbox);
  const holder = await openHolder(inbox);
  const gate = aGate();
  const working = holder.work(await holder.claimOne(), gate.endpoints);
  await gate.reached;
  await whileAnother(inbox, async (operator) => {
    // By this name it is seen to wait.
    await operator.query("set application_name = 'stripe-inbox'");
    const setBack = operator.query(
      `update webhook_inbox set attempts = 0, fence = fence + 1, available_at = now()
        where processed_at is null`,
    );
    await untilSomeoneWaits(inbox);
    gate.goOn();
    expect(await working).toEqual({ outcome: "processed" });
    expect((await setBack).rowCount).toBe(0);
    await operator.query("commit");
  });
  expect(await progress(inbox, event.id)).toMatchObject({ outcome: "processed", attempts: 1 });
  expect(await inbox.books()).toEqual(ONE_BOOKING);
});

test("a row that is held by somebody does not keep a tick from the others, crashed as it may look", async () => {
  const inbox = await openTestbed();
  const held = await waits(inbox, { attempts: 10 });
  const event = await waits(inbox);
  await whileAnother(inbox, async (other) => {
    await other.query("select from webhook_inbox where event_id = $1 for update", [held.id]);
    const counts = await inbox.tick({ LOCK_TIMEOUT_MS: "500" });
    expect(counts).toMatchObject({ processed: 1, crashed: 0 });
  });
  expect(await progress(inbox, event.id)).toMatchObject({ outcome: "processed" });
  expect(await inbox.tick()).toMatchObject({ crashed: 1 });
  expect(await progress(inbox, held.id)).toMatchObject({ parked: true, last_error: "Crashed" });
});

test("a claimed row that is held by somebody does not keep its neighbours from being given back", async () => {
  const inbox = await openTestbed();
  const held = await waits(inbox);
  const event = await waits(inbox);
  const holder = await openHolder(inbox);
  const claims = await holder.claim(2);
  await whileAnother(inbox, async (other) => {
    await other.query("select from webhook_inbox where event_id = $1 for update", [held.id]);
    await holder.giveBack(claims);
  });
  expect(await progress(inbox, event.id)).toMatchObject({ attempts: 0, last_error: "Released" });
  expect(await progress(inbox, held.id)).toMatchObject({ attempts: 1, last_error: null });
});

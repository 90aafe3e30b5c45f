/** Async mode: the answer says stored, and the event is processed right behind it, once. */
import { describe, expect, test } from "vitest";
import { PermanentError } from "../../src/inbox/retry.ts";
import {
  bookAfter,
  ONE_BOOKING,
  progress,
  tally,
  untilSomeoneWaits,
  whileAnother,
} from "./disturbances.ts";
import { anInvoiceEvent, logLines, openTestbed } from "./testbed.ts";
import { states, waits } from "./waiting.ts";

const env = { RECEIVE_MODE: "async" };

test("a new event is stored, and processed behind the answer at its first attempt", async () => {
  const inbox = await openTestbed({ env });
  const event = anInvoiceEvent();
  expect(await inbox.deliver(event)).toMatchObject({
    status: 200,
    outcome: "stored",
    event: event.id,
  });
  expect(await inbox.books()).toEqual(ONE_BOOKING);
  expect(await progress(inbox, event.id)).toMatchObject({ outcome: "processed", attempts: 1 });
});

test("an endpoint may be async by itself, while the others are not", async () => {
  const [name, endpoint] = Object.entries(bookAfter(() => undefined))[0] ?? [];
  if (!name || !endpoint) throw new Error("Bug! There is one endpoint.");
  const inbox = await openTestbed({ endpoints: { [name]: { ...endpoint, mode: "async" } } });
  expect(await inbox.deliver(anInvoiceEvent())).toMatchObject({ outcome: "stored" });
  expect(await inbox.books()).toEqual(ONE_BOOKING);
});

test("what is to be ignored is settled at once", async () => {
  const inbox = await openTestbed({ env });
  const event = { ...anInvoiceEvent(), type: "customer.updated" };
  expect(await inbox.deliver(event)).toMatchObject({ status: 200, outcome: "ignored" });
  expect(await inbox.deliver(event)).toMatchObject({ status: 200, outcome: "duplicate" });
  expect(await progress(inbox, event.id)).toMatchObject({ outcome: "ignored", duplicates: 1 });
});

describe("a redelivery", () => {
  test("of an event that is processed, or stored and waiting, is a duplicate and is counted", async () => {
    const inbox = await openTestbed({ env });
    const event = anInvoiceEvent();
    const waiting = await waits(inbox, { availableIn: 60, attempts: 1 });
    await inbox.deliver(event);
    for (const again of [event, waiting]) {
      expect(await inbox.deliver(again)).toMatchObject({ status: 200, outcome: "duplicate" });
      expect(await progress(inbox, again.id)).toMatchObject({ duplicates: 1, attempts: 1 });
    }
    expect(await states(inbox)).toEqual({ processed: 1, waiting: 1 });
  });

  test("of a parked event says so", async () => {
    const endpoints = bookAfter(() => Promise.reject(new PermanentError("never")));
    const inbox = await openTestbed({ endpoints, env });
    const event = anInvoiceEvent();
    expect(await inbox.deliver(event)).toMatchObject({ outcome: "stored" });
    expect(await inbox.deliver(event)).toMatchObject({ status: 200, outcome: "needs_review" });
    expect(await progress(inbox, event.id)).toMatchObject({ last_error: "PermanentError:never" });
  });

  test("does not wait for whoever is processing the row", async () => {
    const inbox = await openTestbed({ env });
    const event = await waits(inbox, { availableIn: 60, attempts: 1 });
    await whileAnother(inbox, async (other) => {
      await other.query("update webhook_inbox set processed_at = now(), outcome = 'processed'");
      const counted = untilSomeoneWaits(inbox);
      const answered = inbox.deliver(event);
      // Only the count, behind the answer, waits for the row.
      await counted;
      await other.query("commit");
      expect(await answered).toMatchObject({ status: 200, outcome: "duplicate" });
    });
  });
});

test("eight at once: one is stored, seven are duplicates, one is booked", async () => {
  const inbox = await openTestbed({ env });
  const event = anInvoiceEvent();
  const answers = await Promise.all(Array.from({ length: 8 }, () => inbox.deliver(event)));
  expect(tally(answers)).toEqual({ stored: 1, duplicate: 7 });
  expect(await inbox.books()).toEqual(ONE_BOOKING);
});

test("a failure behind the answer is on record and in the log, and a tick makes it good", async () => {
  const endpoints = bookAfter((_, call) => {
    if (call === 1) throw new TypeError("It fails the first time.");
  });
  const inbox = await openTestbed({ endpoints, env });
  const event = anInvoiceEvent();
  const lines = await logLines(() => inbox.deliver(event));
  expect(lines).toContainEqual(
    expect.objectContaining({ message: "process", outcome: "failed", error: "TypeError" }),
  );
  expect(await progress(inbox, event.id)).toMatchObject({ attempts: 1, last_error: "TypeError" });
  await inbox.rows("update webhook_inbox set available_at = now()");
  expect(await inbox.tick()).toMatchObject({ processed: 1, failed: 0 });
  expect(await progress(inbox, event.id)).toMatchObject({ outcome: "processed", attempts: 2 });
  expect(await inbox.books()).toEqual(ONE_BOOKING);
});

test("a lock that others hold all the while is on record behind the answer, and counts no attempt", async () => {
  const inbox = await openTestbed({ env });
  const event = anInvoiceEvent("invoice.paid", { id: "in_held" });
  await inbox.rows("insert into invoices (id, status) values ('in_held', 'open')");
  await whileAnother(inbox, async (other) => {
    await other.query("select from invoices for update");
    expect(await inbox.deliver(event)).toMatchObject({ outcome: "stored" });
  });
  expect(await progress(inbox, event.id)).toMatchObject({
    attempts: 0,
    last_error: "55P03",
    parked: false,
  });
});

test("an event that was left unsettled is finished by a sync delivery, too", async () => {
  const inbox = await openTestbed();
  const event = await waits(inbox, { availableIn: 60, attempts: 1 });
  expect(await inbox.deliver(event)).toMatchObject({ status: 200, outcome: "processed" });
  expect(await inbox.books()).toEqual(ONE_BOOKING);
});

describe.each(["sync", "async"])("with PROCESSING=paused, in %s mode", (RECEIVE_MODE) => {
  test("everything is stored and nothing processed, until it is on again", async () => {
    const paused = { RECEIVE_MODE, PROCESSING: "paused" };
    const inbox = await openTestbed({ env: paused });
    const event = anInvoiceEvent();
    expect(await inbox.deliver(event)).toMatchObject({ status: 200, outcome: "stored" });
    expect(await inbox.deliver(event)).toMatchObject({ status: 200, outcome: "duplicate" });
    expect(await inbox.tick()).toMatchObject({ processed: 0 });
    expect(await states(inbox)).toEqual({ waiting: 1 });
    expect(await progress(inbox, event.id)).toMatchObject({ attempts: 0 });
    expect(await inbox.tick({ PROCESSING: "on" })).toMatchObject({ processed: 1 });
    expect(await inbox.books()).toEqual(ONE_BOOKING);
  });
});

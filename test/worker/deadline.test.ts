/** Every answer comes within ten seconds, whatever the database does, and none of them is a lie. */
import { sql } from "drizzle-orm";
import { describe, expect, inject, test } from "vitest";
import {
  bookAfter,
  deliverUntil,
  NOTHING_BOOKED,
  ONE_BOOKING,
  progress,
  takeKey,
  untilSomeoneWaits,
  whileAnother,
} from "./disturbances.ts";
import { type Answer, anInvoiceEvent, openTestbed } from "./testbed.ts";

/** The ten seconds, and one for a slow machine. */
const IN_TIME_MS = 11_000;

async function timed(work: () => Promise<Answer>): Promise<{ answer: Answer; ms: number }> {
  const started = Date.now();
  const answer = await work();
  return { answer, ms: Date.now() - started };
}

describe.concurrent("the answer", () => {
  test("is 503 when the database accepts the connection and says nothing", async () => {
    const inbox = await openTestbed({ route: () => inject("silentUrl") });
    const { answer, ms } = await timed(() => inbox.deliver(anInvoiceEvent()));
    expect(answer).toMatchObject({ status: 503, outcome: "unavailable" });
    expect(ms).toBeGreaterThan(8_500);
    expect(ms).toBeLessThan(IN_TIME_MS);
    expect(await inbox.books()).toMatchObject({ inbox: 0 });
  });

  test("is 503 when the connection is refused, long before the deadline", async () => {
    const inbox = await openTestbed({ route: () => "postgres://postgres@127.0.0.1:1/postgres" });
    const { answer, ms } = await timed(() => inbox.deliver(anInvoiceEvent()));
    expect(answer).toMatchObject({ status: 503, outcome: "unavailable" });
    expect(ms).toBeLessThan(5_000);
  });

  test("is 500, never `duplicate`, while another holds the event for as long as we can wait", async () => {
    const inbox = await openTestbed();
    const event = anInvoiceEvent();
    await whileAnother(inbox, async (other) => {
      await takeKey(other, event);
      const { answer, ms } = await timed(() => inbox.deliver(event));
      expect(answer).toMatchObject({ status: 500, outcome: "failed" });
      expect(ms).toBeLessThan(IN_TIME_MS);
    });
    // The other never committed.
    expect(await inbox.books()).toMatchObject({ inbox: 0 });
    expect(await inbox.deliver(event)).toMatchObject({ status: 200, outcome: "processed" });
    expect(await inbox.books()).toEqual(ONE_BOOKING);
  });

  test("is 503 when a COMMIT outlasts the deadline; what it did is found by the redelivery", async () => {
    const inbox = await openTestbed();
    await inbox.rows(`create function linger() returns trigger language plpgsql as $$
      begin perform pg_sleep(11); return null; end $$`);
    await inbox.rows(`create constraint trigger linger after insert on outbox
      deferrable initially deferred for each row execute function linger()`);
    const event = anInvoiceEvent();
    const { answer, ms } = await timed(() => inbox.deliver(event));
    expect(answer).toMatchObject({ status: 503, outcome: "unavailable" });
    expect(ms).toBeLessThan(IN_TIME_MS);

    const again = await deliverUntil(inbox, event, 200);
    expect(again).toMatchObject({ status: 200, outcome: "duplicate" });
    expect(await inbox.books()).toEqual(ONE_BOOKING);
  });
});

test("an event that another holds for a moment is processed when the other gives it up", async () => {
  const inbox = await openTestbed();
  const event = anInvoiceEvent();
  await whileAnother(inbox, async (other) => {
    await takeKey(other, event);
    const delivery = inbox.deliver(event);
    await untilSomeoneWaits(inbox);
    await other.query("rollback");
    expect(await delivery).toMatchObject({ status: 200, outcome: "processed" });
  });
  expect(await inbox.books()).toEqual(ONE_BOOKING);
});

test("an event that another settles while we wait for it is a duplicate", async () => {
  const inbox = await openTestbed();
  const event = anInvoiceEvent();
  await whileAnother(inbox, async (other) => {
    await takeKey(other, event);
    await other.query("update webhook_inbox set processed_at = now(), outcome = 'processed'");
    const delivery = inbox.deliver(event);
    await untilSomeoneWaits(inbox);
    await other.query("commit");
    expect(await delivery).toMatchObject({ status: 200, outcome: "duplicate" });
  });
  expect(await inbox.books()).toEqual(NOTHING_BOOKED);
});

describe("with a statement timeout of 300 ms", () => {
  const env = { RECEIVE_STATEMENT_TIMEOUT_MS: "300", RECEIVE_LOCK_TIMEOUT_MS: "200" };

  test("a handler's statement that takes longer is a failure on record, and can be tried again", async () => {
    const endpoints = bookAfter((tx, call) =>
      tx.execute(sql`select pg_sleep(${call === 1 ? 30 : 0})`),
    );
    const inbox = await openTestbed({ endpoints, env });
    const event = anInvoiceEvent();
    expect(await inbox.deliver(event)).toMatchObject({ status: 500, outcome: "failed" });
    expect(await progress(inbox, event.id)).toMatchObject({ attempts: 1, last_error: "57014" });
    expect(await inbox.books()).toEqual(NOTHING_BOOKED);
    expect(await inbox.deliver(event)).toMatchObject({ status: 200, outcome: "processed" });
    expect(await inbox.books()).toEqual(ONE_BOOKING);
  });

  test("a handler may take longer than that between its statements", async () => {
    const endpoints = bookAfter(() => new Promise((resolve) => setTimeout(resolve, 600)));
    const inbox = await openTestbed({ endpoints, env });
    expect(await inbox.deliver(anInvoiceEvent())).toMatchObject({ outcome: "processed" });
  });
});

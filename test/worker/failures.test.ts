/** A failure is recorded, says nothing of a person, and ends in a booking or in a review. */
import { sql } from "drizzle-orm";
import { describe, expect, test } from "vitest";
import { PermanentError } from "../../src/inbox/retry.ts";
import { bookAfter, NOTHING_BOOKED, ONE_BOOKING, progress } from "./disturbances.ts";
import { type Answer, anInvoiceEvent, logLines, openTestbed } from "./testbed.ts";

const PERSON = "Saoirse Example <saoirse@example.test>";

test("an event whose handler fails is on record with a time to try again; its redelivery is booked", async () => {
  const endpoints = bookAfter((_, call) => {
    if (call === 1) throw new TypeError("The first call fails.");
  });
  const inbox = await openTestbed({ endpoints });
  const event = anInvoiceEvent();

  expect(await inbox.deliver(event)).toMatchObject({ status: 500, outcome: "failed" });
  expect(await inbox.books()).toEqual(NOTHING_BOOKED);
  expect(await progress(inbox, event.id)).toEqual({
    outcome: null,
    attempts: 1,
    last_error: "TypeError",
    parked: false,
    duplicates: 0,
  });
  const [recorded] = await inbox.rows(`select fence::int, available_at > received_at
    and available_at <= received_at + interval '2 seconds' as soon from webhook_inbox`);
  expect(recorded).toMatchObject({ soon: true });

  expect(await inbox.deliver(event)).toMatchObject({ status: 200, outcome: "processed" });
  expect(await inbox.books()).toEqual(ONE_BOOKING);
  expect(await progress(inbox, event.id)).toEqual({
    outcome: "processed",
    attempts: 2,
    last_error: null,
    parked: false,
    duplicates: 0,
  });
  const [settled] = await inbox.rows("select fence::int from webhook_inbox");
  expect(settled?.["fence"]).toBeGreaterThan(Number(recorded?.["fence"]));
});

test.each([
  ["two to the power of the attempts", "300", 4, 2 ** 5],
  ["the cap", "7", 29, 7],
])("a row waits no longer than %s, in seconds", async (_, BACKOFF_CAP_SECONDS, before, longest) => {
  const endpoints = bookAfter(() => Promise.reject(new Error("It fails.")));
  const inbox = await openTestbed({ endpoints, env: { BACKOFF_CAP_SECONDS, MAX_ATTEMPTS: "99" } });
  const waits: number[] = [];
  for (let n = 0; n < 12; n++) {
    const event = anInvoiceEvent();
    await inbox.rows(
      `insert into webhook_inbox (endpoint, event_id, event_type, payload, attempts)
        values ('billing', $1, $2, $3, $4)`,
      [event.id, event.type, JSON.stringify(event), before],
    );
    await inbox.deliver(event);
    // The transaction's start is when `available_at` was reckoned from; it ended just now.
    const [row] = await inbox.rows(
      "select extract(epoch from available_at - now())::float8 as seconds from webhook_inbox where event_id = $1",
      [event.id],
    );
    waits.push(Number(row?.["seconds"]));
  }
  expect(Math.max(...waits)).toBeLessThanOrEqual(longest);
  // Twelve even draws, all in the lowest eighth: never.
  expect(Math.max(...waits)).toBeGreaterThan(longest / 8);
});

describe("what an error says of a person", () => {
  const named = Object.assign(new Error(PERSON), { name: PERSON });
  test.each<[string, (tx: Parameters<Parameters<typeof bookAfter>[0]>[0]) => unknown, string]>([
    ["in its message", () => Promise.reject(new Error(PERSON)), "Error"],
    ["in its name", () => Promise.reject(named), "Error"],
    ["as the thing thrown", () => Promise.reject(PERSON), "NotAnError"],
    ["as its reason", () => Promise.reject(new PermanentError(PERSON)), "PermanentError:unnamed"],
    ["in a refused parameter", (tx) => tx.execute(sql`select ${PERSON}::int`), "22P02"],
  ])("%s is in no row, no log line and no answer", async (_, step, code) => {
    const inbox = await openTestbed({ endpoints: bookAfter(step) });
    const event = anInvoiceEvent("invoice.paid", { customer: null });
    let answer: Answer | undefined;
    const lines = await logLines(async () => {
      answer = await inbox.deliver(event);
    });
    const [row] = await inbox.rows(
      "select (webhook_inbox.*)::text as everything from webhook_inbox",
    );

    expect(lines).toMatchObject([{ message: "delivery", error: code, event: event.id }]);
    expect(await progress(inbox, event.id)).toMatchObject({ last_error: code });
    for (const said of [JSON.stringify(lines), String(row?.["everything"]), answer?.text ?? ""]) {
      expect(said).toContain(event.id);
      expect(said).not.toMatch(/saoirse/i);
    }
  });
});

describe("a failure whose record comes after another delivery", () => {
  test.each([
    ["settled the event is answered as a duplicate", null, "duplicate"],
    [
      "parked it is answered as needing review",
      new PermanentError("of_the_second"),
      "needs_review",
    ],
  ])("%s", async (_, secondFails, outcome) => {
    const second = Promise.withResolvers<Answer>();
    const inbox = await openTestbed({
      endpoints: bookAfter((_tx, call, event) => {
        if (call === 2 && secondFails) throw secondFails;
        if (call > 1) return;
        second.resolve(inbox.deliver(event));
        throw new Error("The first one fails.");
      }),
    });
    // Holds the record of the first failure until the second delivery is done.
    await inbox.rows(`create function wait_for_the_other() returns trigger language plpgsql as $$
      begin
        while not exists (select from webhook_inbox
          where processed_at is not null or parked_at is not null)
        loop perform pg_sleep(0.01); end loop;
        return new;
      end $$`);
    await inbox.rows(`create trigger late before insert on webhook_inbox for each row
      when (new.last_error = 'Error') execute function wait_for_the_other()`);

    const event = anInvoiceEvent();
    expect(await inbox.deliver(event)).toMatchObject({ status: 200, outcome });
    expect(await second.promise).toMatchObject({ outcome: secondFails ? outcome : "processed" });
    expect(await inbox.books()).toEqual(secondFails ? NOTHING_BOOKED : ONE_BOOKING);
    expect(await progress(inbox, event.id)).toMatchObject({ attempts: 1 });
  });
});

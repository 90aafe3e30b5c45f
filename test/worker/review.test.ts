/** What a person must look at is parked, and nothing else is. */
import { describe, expect, test, vi } from "vitest";
import { PermanentError } from "../../src/inbox/retry.ts";
import { bookAfter, NOTHING_BOOKED, progress, raising, tally } from "./disturbances.ts";
import { anInvoiceEvent, openTestbed } from "./testbed.ts";

describe("an event that needs review", () => {
  test("is parked at once by a permanent error, and redeliveries do not call the handler", async () => {
    const step = vi.fn(() => Promise.reject(new PermanentError("amount_unusable")));
    const inbox = await openTestbed({ endpoints: bookAfter(step) });
    const event = anInvoiceEvent();

    for (const duplicates of [0, 1, 2]) {
      expect(await inbox.deliver(event)).toMatchObject({ status: 200, outcome: "needs_review" });
      expect(await progress(inbox, event.id)).toEqual({
        outcome: null,
        attempts: 1,
        last_error: "PermanentError:amount_unusable",
        parked: true,
        duplicates,
      });
    }
    expect(step).toHaveBeenCalledTimes(1);
    expect(await inbox.books()).toEqual(NOTHING_BOOKED);
  });

  test("is parked by the last attempt allowed, not by the one before", async () => {
    const step = vi.fn(() => Promise.reject(new Error("It always fails.")));
    const inbox = await openTestbed({ endpoints: bookAfter(step), env: { MAX_ATTEMPTS: "3" } });
    const event = anInvoiceEvent();

    expect(await inbox.deliver(event)).toMatchObject({ status: 500, outcome: "failed" });
    expect(await inbox.deliver(event)).toMatchObject({ status: 500, outcome: "failed" });
    expect(await progress(inbox, event.id)).toMatchObject({ attempts: 2, parked: false });
    expect(await inbox.deliver(event)).toMatchObject({ status: 200, outcome: "needs_review" });
    expect(await progress(inbox, event.id)).toMatchObject({ attempts: 3, parked: true });
    expect(await inbox.deliver(event)).toMatchObject({ status: 200, outcome: "needs_review" });
    expect(step).toHaveBeenCalledTimes(3);
  });
});

describe("with one attempt allowed", () => {
  const MAX_ATTEMPTS = "1";
  const trouble = ["08006", "25006", "40001", "40P01", "53300", "55P03", "57P01", "57P03"];

  test.each(trouble)("trouble of the database (%s) neither counts nor parks", async (state) => {
    const endpoints = bookAfter((tx) => tx.execute(raising(state)));
    const inbox = await openTestbed({ endpoints, env: { MAX_ATTEMPTS } });
    const event = anInvoiceEvent();
    const answers = [];
    for (let n = 0; n < 4; n++) answers.push(await inbox.deliver(event));

    expect(tally(answers)).toEqual({ failed: 4 });
    expect(await progress(inbox, event.id)).toMatchObject({
      attempts: 0,
      last_error: state,
      parked: false,
    });
  });

  test.each(["22012", "23505", "25001", "42601", "57014"])(
    "our own error (%s) parks",
    async (state) => {
      const endpoints = bookAfter((tx) => tx.execute(raising(state)));
      const inbox = await openTestbed({ endpoints, env: { MAX_ATTEMPTS } });
      const event = anInvoiceEvent();

      expect(await inbox.deliver(event)).toMatchObject({ status: 200, outcome: "needs_review" });
      expect(await progress(inbox, event.id)).toMatchObject({ last_error: state, parked: true });
    },
  );
});

test("an outage uses up no attempts: the first fault of ours after it does not park", async () => {
  const endpoints = bookAfter((tx, call) => tx.execute(raising(call <= 12 ? "53100" : "57014")));
  const inbox = await openTestbed({ endpoints });
  const event = anInvoiceEvent();
  for (let n = 0; n < 12; n++) await inbox.deliver(event);
  expect(await inbox.deliver(event)).toMatchObject({ status: 500, outcome: "failed" });
  expect(await progress(inbox, event.id)).toMatchObject({ attempts: 1, parked: false });
});

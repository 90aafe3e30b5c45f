/** A handler that takes too long is a failure on record, and nothing of it comes later. */
import { sql } from "drizzle-orm";
import { expect, test } from "vitest";
import { invoices } from "../../src/db/schema.ts";
import { bookAfter, NOTHING_BOOKED, ONE_BOOKING, progress } from "./disturbances.ts";
import { anInvoiceEvent, openTestbed, PIPELINE_SETTINGS } from "./testbed.ts";

const never = new Promise(() => undefined);

test("one that never ends is recorded in time, attempt by attempt, and parked at the last", async () => {
  const inbox = await openTestbed({
    endpoints: bookAfter(() => never),
    env: { MAX_ATTEMPTS: "2" },
  });
  const event = anInvoiceEvent();

  expect(await inbox.deliver(event)).toMatchObject({ status: 500, outcome: "failed" });
  expect(await progress(inbox, event.id)).toMatchObject({
    attempts: 1,
    last_error: "HandlerTooSlow",
    parked: false,
  });
  expect(await inbox.deliver(event)).toMatchObject({ status: 200, outcome: "needs_review" });
  expect(await inbox.books()).toEqual(NOTHING_BOOKED);
});

test.concurrent.each(PIPELINE_SETTINGS)(
  "with PIPELINE=%s, statements that are slow only together are cut in time to be recorded",
  async (PIPELINE) => {
    const endpoints = bookAfter(async (tx) => {
      await tx.execute(sql`select pg_sleep(4.5)`);
      await tx.execute(sql`select pg_sleep(4.5)`);
    });
    const inbox = await openTestbed({ endpoints, env: { PIPELINE } });
    const event = anInvoiceEvent();

    expect(await inbox.deliver(event)).toMatchObject({ status: 500, outcome: "failed" });
    const { last_error } = await progress(inbox, event.id);
    expect(["57014", "HandlerTooSlow"]).toContain(last_error);
    expect(await inbox.books()).toEqual(NOTHING_BOOKED);
  },
);

test("what a failed handler left running does not slip into the next transaction", async () => {
  const straggler = Promise.withResolvers<unknown>();
  const endpoints = bookAfter((tx, call) => {
    if (call > 1) return;
    const late = async (): Promise<void> => {
      await new Promise((resolve) => setTimeout(resolve, 0));
      await tx.insert(invoices).values({ id: "in_straggler", status: "draft" });
    };
    late().then(straggler.resolve, (error: Error) => straggler.resolve(error.cause ?? error));
    throw new TypeError("It fails before its own statement has begun.");
  });
  const inbox = await openTestbed({ endpoints });
  const event = anInvoiceEvent();

  expect(await inbox.deliver(event)).toMatchObject({ status: 500 });
  expect(await straggler.promise).toBeInstanceOf(TypeError);
  expect(await inbox.books()).toEqual(NOTHING_BOOKED);
  expect(await inbox.deliver(event)).toMatchObject({ outcome: "processed" });
  expect(await inbox.books()).toEqual(ONE_BOOKING);
});

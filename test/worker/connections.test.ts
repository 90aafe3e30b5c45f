/** A delivery takes one connection and gives it back, however it ends. */
import { sql } from "drizzle-orm";
import { expect, test } from "vitest";
import { PermanentError } from "../../src/inbox/retry.ts";
import { bookAfter, tally } from "./disturbances.ts";
import { anInvoiceEvent, openTestbed } from "./testbed.ts";

const BATCHES = 20;
const AT_ONCE = 25;

test("five hundred deliveries, some of them failing, leave no connection behind", async () => {
  type Ending = Parameters<typeof bookAfter>[0];
  const endings: readonly Ending[] = [
    () => undefined,
    () => undefined,
    () => Promise.reject(new Error("It fails.")),
    () => Promise.reject(new PermanentError("of_no_use")),
    (tx) => tx.execute(sql`select 1 / 0`),
  ];
  const inbox = await openTestbed({
    endpoints: bookAfter((tx, call, event) => endings[call % endings.length]?.(tx, call, event)),
  });
  const connected = async (): Promise<unknown> => {
    const [row] = await inbox.rows(`select count(*)::int as backends from pg_stat_activity
      where datname = current_database() and application_name = 'stripe-inbox'`);
    return row?.["backends"];
  };
  let processed = 0;
  for (let batch = 0; batch < BATCHES; batch++) {
    const answers = await Promise.all(
      Array.from({ length: AT_ONCE }, () => inbox.deliver(anInvoiceEvent())),
    );
    expect(tally(answers)).toEqual({ processed: 10, failed: 10, needs_review: 5 });
    processed += 10;
    // A backend ends a moment after its client has said goodbye.
    await expect.poll(connected, { timeout: 20_000 }).toBe(0);
  }
  expect(await inbox.books()).toMatchObject({ inbox: BATCHES * AT_ONCE, entries: processed });
});

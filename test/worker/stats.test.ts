/** The figures that a person on call reads. */
import { expect, test } from "vitest";
import { connect } from "../../src/db/connect.ts";
import { type InboxStats, readStats } from "../../src/inbox/stats.ts";
import { anInvoiceEvent, openTestbed, type Testbed } from "./testbed.ts";
import { waits } from "./waiting.ts";

async function stats({ databaseUrl }: Testbed): Promise<InboxStats> {
  const database = { connectionString: databaseUrl, pipeline: true };
  const db = await connect(database, new AbortController().signal);
  try {
    return await readStats(db, { lockTimeoutMs: 1_000, statementTimeoutMs: 5_000 });
  } finally {
    await db.close();
  }
}

test("an empty inbox has nothing to say", async () => {
  expect(await stats(await openTestbed())).toEqual({
    waiting: 0,
    oldestWaitingSeconds: null,
    needsReview: 0,
    needsReviewByReason: [],
    ignoredLastDay: [],
    receivedLastHour: [],
    duplicatesByHour: [],
  });
});

test("what waits is counted, with the age of the oldest; what is settled or parked is not", async () => {
  const inbox = await openTestbed();
  await inbox.deliver(anInvoiceEvent());
  await inbox.deliver(anInvoiceEvent("invoice.paid", { amountPaid: -1 }));
  const [older] = [await waits(inbox), await waits(inbox, { attempts: 1, availableIn: 60 })];
  await inbox.rows(
    "update webhook_inbox set received_at = now() - interval '1 hour' where event_id = $1",
    [older?.id],
  );
  const { waiting, oldestWaitingSeconds } = await stats(inbox);
  expect(waiting).toBe(2);
  expect(oldestWaitingSeconds).toBeGreaterThanOrEqual(3_600);
  expect(oldestWaitingSeconds).toBeLessThan(3_660);
});

test("what needs review, and what was ignored, is told by its reason, the commonest first", async () => {
  const inbox = await openTestbed();
  const unpaid = { status: "open" } as const;
  for (const facts of [{ amountPaid: -1 }, { amountPaid: -2 }, unpaid]) {
    await inbox.deliver(anInvoiceEvent("invoice.paid", facts));
  }
  await inbox.deliver({ ...anInvoiceEvent(), type: "customer.updated" });
  await inbox.deliver({ ...anInvoiceEvent(), account: "acct_other" });
  await inbox.deliver({ ...anInvoiceEvent(), type: "charge.succeeded" });
  const { needsReview, needsReviewByReason, ignoredLastDay } = await stats(inbox);
  expect(needsReview).toBe(3);
  expect(needsReviewByReason).toEqual([
    { reason: "PermanentError:amount_paid_unusable", events: 2 },
    { reason: "PermanentError:paid_event_of_unpaid_invoice", events: 1 },
  ]);
  expect(ignoredLastDay).toEqual([
    { reason: "no_handler", events: 2 },
    { reason: "account", events: 1 },
  ]);
});

test("what was received in the last hour is told by type, and duplicates by hour with their share", async () => {
  const inbox = await openTestbed();
  const event = anInvoiceEvent();
  for (let n = 0; n < 4; n++) await inbox.deliver(event);
  const earlier = await waits(inbox, {
    event: anInvoiceEvent("invoice.voided", { status: "void" }),
  });
  await inbox.rows(
    "update webhook_inbox set received_at = now() - interval '61 minutes' where event_id = $1",
    [earlier.id],
  );
  const { receivedLastHour, duplicatesByHour } = await stats(inbox);
  expect(receivedLastHour).toEqual([{ type: "invoice.paid", events: 1 }]);
  const [latest] = duplicatesByHour;
  expect(latest).toMatchObject({ events: 1, duplicates: 3, share: 0.75 });
  expect(latest?.hour.getMinutes()).toBe(0);
  expect(duplicatesByHour.at(-1)).toMatchObject({ events: 1, duplicates: 0, share: 0 });
});

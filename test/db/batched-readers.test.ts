/** Who reads is asked in a transaction of its own, and sees what was written before. */
import { sql } from "drizzle-orm";
import { expect, test } from "vitest";
import { invoiceHandlers } from "../../src/billing/handlers.ts";
import type { Tx } from "../../src/db/connect.ts";
import { RowWrite } from "../../src/db/row-write.ts";
import { billing, book, progress } from "../worker/disturbances.ts";
import { anInvoiceEvent, openTestbed } from "../worker/testbed.ts";
import { manyWait, waits } from "../worker/waiting.ts";
import { transactionsOf, waitAround } from "./batched.ts";

const ONE_LANE = { CONCURRENCY: "1" };

/** How a handler may ask for the number of ledger entries. */
const READS: Record<string, (tx: Tx, seen: (count: unknown) => void) => unknown> = {
  reads: async (tx, seen) => seen(await countEntries(tx)),
  "reads in a transaction of its own": (tx, seen) =>
    tx.transaction(async (inner) => seen(await countEntries(inner))),
  "reads, and takes no for an answer": (tx, seen) => countEntries(tx).then(seen, () => undefined),
  "reads without waiting for the answer": (tx, seen) => {
    countEntries(tx).then(seen, () => undefined);
  },
  "waits for a write of its own": async (tx, seen) => {
    await new RowWrite(
      tx,
      { keyOf: String, write: () => sql`select count(*)::int as count from ledger_entries` },
      0,
    );
    seen(await countEntries(tx));
  },
};

const bookSucceeded = invoiceHandlers["invoice.payment_succeeded"];

const countEntries = async (tx: Tx): Promise<unknown> => {
  const { rows } = await tx.execute(sql`select count(*)::int as count from ledger_entries`);
  return rows[0]?.["count"];
};

test.each(Object.entries(READS))(
  "an event whose handler %s is processed by itself, and sees what the batch wrote",
  async (_, read) => {
    // Of a type of its own: who reads once is left with all its events.
    const reader = anInvoiceEvent("invoice.payment_succeeded");
    const seen: unknown[] = [];
    const endpoints = billing({
      "invoice.paid": book,
      "invoice.payment_succeeded": async (event, tx) => {
        await read(tx, (count) => seen.push(count));
        return bookSucceeded(event, tx);
      },
    });
    const inbox = await openTestbed({ endpoints });
    const neighbours = await waitAround(inbox, reader);
    expect(await inbox.tick(ONE_LANE)).toMatchObject({ processed: 5, failed: 0, taken: 0 });
    expect(seen).toEqual([4]);
    expect(await transactionsOf(inbox, neighbours)).toBe(1);
    expect(await transactionsOf(inbox, [...neighbours, reader])).toBe(2);
    expect(await progress(inbox, reader.id)).toMatchObject({ attempts: 1, last_error: null });
    expect(await inbox.books()).toMatchObject({ entries: 5, messages: 5 });
  },
);

test("a handler that was seen to read is asked in no batch again", async () => {
  let calls = 0;
  const endpoints = billing({
    "invoice.paid": book,
    "invoice.payment_succeeded": async (event, tx) => {
      calls += 1;
      await countEntries(tx);
      return bookSucceeded(event, tx);
    },
  });
  const inbox = await openTestbed({ endpoints });
  const others = await manyWait(inbox, 6);
  for (let n = 0; n < 6; n++) {
    await waits(inbox, { event: anInvoiceEvent("invoice.payment_succeeded") });
  }
  const counts = await inbox.tick({ ...ONE_LANE, CLAIM_BATCH: "6" });
  expect(counts).toMatchObject({ processed: 12, failed: 0 });
  expect(calls).toBe(6 + 1);
  expect(await transactionsOf(inbox, others)).toBeLessThanOrEqual(2);
  expect(await inbox.books()).toMatchObject({ entries: 12, messages: 12 });
});

test("a read that comes too late takes nobody's place in the books", async () => {
  const late = anInvoiceEvent();
  const endpoints = billing({
    "invoice.paid": async (event, tx) => {
      if (event.id === late.id) {
        setTimeout(() => {
          countEntries(tx).catch(() => undefined);
        }, 1);
      } else await new Promise((resolve) => setTimeout(resolve, 5));
      return book(event, tx);
    },
  });
  const inbox = await openTestbed({ endpoints });
  await waitAround(inbox, late);
  expect(await inbox.tick(ONE_LANE)).toMatchObject({ processed: 5, failed: 0 });
  expect(await inbox.books()).toMatchObject({ inbox: 5, entries: 5, messages: 5 });
});

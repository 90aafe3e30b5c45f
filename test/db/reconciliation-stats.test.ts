/** What a person reads of reconciliation: who was swept, what was missing, what is open. */
import { expect, test } from "vitest";
import { readNow } from "../../src/operate/figures.ts";
import { openConnection } from "./holders.ts";
import { aPayment, BOTH, HOUR, openReconciled, somePayments, sweepsAge } from "./reconciled.ts";

const TIMEOUTS = { lockTimeoutMs: 3_000, statementTimeoutMs: 5_000 };

test("where nothing was ever swept, there is nothing to tell", async () => {
  const { inbox } = await openReconciled();
  const db = await openConnection(inbox.databaseUrl);
  expect((await readNow(db, TIMEOUTS)).reconciliation).toEqual({
    sweeps: [],
    gapsLastDay: [],
    openDiscrepancies: [],
  });
});

test("how long nobody has looked, and why, what was missing, and what waits for a person", async () => {
  const reconciled = await openReconciled({
    endpoints: BOTH,
    env: { STRIPE_CONNECTED_ACCOUNTS: "acct_gone" },
    api: { listFault: ({ account }) => (account === null ? null : { status: 403 }) },
  });
  const { inbox, happened, settle } = reconciled;
  happened(HOUR, ...somePayments(3));
  const voided = aPayment("invoice.voided", { status: "void" });
  await inbox.deliver(voided);
  const paid = aPayment("invoice.paid", { id: String(voided.data?.object["id"]) });
  await inbox.deliver(paid);
  await inbox.tick();
  await sweepsAge(reconciled, "1 hour");
  const db = await openConnection(inbox.databaseUrl);
  const { sweeps, ...rest } = (await readNow(db, TIMEOUTS)).reconciliation;
  expect(sweeps).toEqual([
    {
      account: "acct_gone",
      completedAt: null,
      seenSecondsAgo: null,
      firstSecondsAgo: expect.any(Number),
      error: "Stripe:403",
    },
    {
      account: "own",
      completedAt: expect.any(Date),
      seenSecondsAgo: expect.any(Number),
      firstSecondsAgo: expect.any(Number),
      error: null,
    },
  ]);
  // 15 minutes that no sweep looks at, and the hour since.
  expect(Math.round((sweeps[1]?.seenSecondsAgo ?? 0) / 60)).toBe(75);
  expect(rest).toEqual({
    gapsLastDay: [{ endpoint: "billing", events: 3 }],
    openDiscrepancies: [{ kind: "paid_after_void", objects: 1, oldestSeconds: expect.any(Number) }],
  });
  await expect(settle()).rejects.toThrow("no end");
});

/** Which statements of a delivery are prepared, and what becomes of them when all around changes. */
import { expect, onTestFinished, test } from "vitest";
import { connect } from "../../src/db/connect.ts";
import { invoiceHandlers } from "../../src/billing/handlers.ts";
import { type Received, receiveSync } from "../../src/inbox/receive.ts";
import { eventFromInbox } from "../../src/stripe/verify.ts";
import type { StripeEvent } from "../local/events.ts";
import { anInvoiceEvent, openTestbed, type Testbed } from "../worker/testbed.ts";
import { manyWait } from "../worker/waiting.ts";
import { openBatcher } from "./batched.ts";

const endpoint = {
  name: "billing",
  livemode: null,
  accounts: "own",
  handlers: invoiceHandlers,
} as const;
const policy = {
  timeouts: { lockTimeoutMs: 3_000, statementTimeoutMs: 5_000 },
  maxAttempts: 10,
  backoffCapSeconds: 300,
  remainingMs: () => 9_000,
};

interface Receiver {
  readonly deliver: (event: StripeEvent) => Promise<Received>;
  /** Texts of what its server has prepared. */
  readonly prepared: () => Promise<readonly string[]>;
  readonly forgetAll: () => Promise<void>;
}

/** One connection that stays, as a pooler's to its server does; closed when the test is over. */
async function openReceiver({ databaseUrl }: Testbed, remainingMs = 9_000): Promise<Receiver> {
  const db = await connect(
    { connectionString: databaseUrl, pipeline: true, prepare: true },
    new AbortController().signal,
  );
  onTestFinished(() => db.close());
  return {
    deliver: (event) =>
      receiveSync(
        db,
        { event: eventFromInbox(JSON.stringify(event), false), endpoint },
        { ...policy, remainingMs: () => remainingMs },
      ),
    prepared: async () => {
      const text = "select statement from pg_prepared_statements order by 1";
      const [answer] = await Promise.all(db.send([{ text }]));
      return (answer?.rows ?? []).map(({ statement }) => String(statement));
    },
    forgetAll: async () => {
      await Promise.all(db.send([{ text: "deallocate all" }]));
    },
  };
}

const finalized = () => anInvoiceEvent("invoice.finalized");

/** The tables that a plan looks into, rather than writes to. */
function tablesRead(plan: unknown): readonly unknown[] {
  if (typeof plan !== "object" || plan === null) return [];
  const node = new Map(Object.entries(plan));
  const own = node.get("Node Type") === "ModifyTable" ? undefined : node.get("Relation Name");
  return [...(own === undefined ? [] : [own]), ...[...node.values()].flatMap(tablesRead)];
}

test("what is prepared looks up no row: a plan made for a small table would stay as it grows", async () => {
  const inbox = await openTestbed();
  const receiver = await openReceiver(inbox);
  await receiver.deliver(anInvoiceEvent("invoice.paid"));
  await receiver.deliver(finalized());
  const batcher = await openBatcher(inbox);
  await manyWait(inbox, 3);
  await batcher.settleAll();
  await manyWait(inbox, 2);
  await batcher.apart(await batcher.claimAll());
  await manyWait(inbox, 1);
  for (const claim of await batcher.claimAll()) await batcher.alone(claim);
  const [inTicks] = await Promise.all(
    batcher.db.send([{ text: "select statement from pg_prepared_statements" }]),
  );

  const statements = [
    ...(await receiver.prepared()),
    ...(inTicks?.rows ?? []).map(({ statement }) => String(statement)),
  ];
  expect(new Set(statements).size).toBeGreaterThanOrEqual(3);
  for (const statement of statements) {
    const [row] = await inbox.rows(`explain (generic_plan, format json) ${statement}`);
    expect(tablesRead(row?.["QUERY PLAN"])).toEqual([]);
  }
});

test.each([
  ["the server forgets them", (_: Testbed, receiver: Receiver) => receiver.forgetAll()],
  [
    "a column's type changes",
    (inbox: Testbed) => inbox.rows("alter table invoices alter customer_id type varchar(300)"),
  ],
])("when %s, the next delivery is processed at its first attempt", async (_, change) => {
  const inbox = await openTestbed();
  // With no time left for a second wait for locks, which this is not.
  const receiver = await openReceiver(inbox, 4_500);
  expect(await receiver.deliver(finalized())).toEqual({ outcome: "processed" });
  await change(inbox, receiver);
  expect(await receiver.deliver(finalized())).toEqual({ outcome: "processed" });
  expect(await inbox.rows("select distinct attempts, last_error from webhook_inbox")).toEqual([
    { attempts: 1, last_error: null },
  ]);
  expect(await inbox.books()).toMatchObject({ inbox: 2, invoices: 2 });
});

test("an isolate that found its pooler confusing names prepares nothing on new connections", async () => {
  const inbox = await openTestbed();
  const receiver = await openReceiver(inbox);
  await receiver.deliver(finalized());
  await receiver.forgetAll();
  await receiver.deliver(finalized());

  const next = await openReceiver(inbox);
  expect(await next.deliver(finalized())).toEqual({ outcome: "processed" });
  expect(await next.prepared()).toEqual([]);
  const elsewhere = await openReceiver(await openTestbed());
  await elsewhere.deliver(finalized());
  expect(await elsewhere.prepared()).not.toEqual([]);
});

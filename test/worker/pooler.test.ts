/** Two round trips rest on pipelining through a transaction pooler; so does every promise. */
import { describe, expect, inject, test } from "vitest";
import { anInvoiceEvent, openTestbed, PIPELINE_SETTINGS, query, type Testbed } from "./testbed.ts";

const poolerPort = inject("poolerPort");

/** More deliveries at once than the pooler has server connections. */
const CROWD = 40;

function throughPooler(databaseUrl: string): string {
  const url = new URL(databaseUrl);
  url.port = String(poolerPort);
  return url.href;
}

function open(env = {}): Promise<Testbed> {
  return openTestbed({ env, route: throughPooler });
}

describe.skipIf(poolerPort === null)("through PgBouncer in transaction mode", () => {
  test.each(PIPELINE_SETTINGS)("the answers are the same with PIPELINE=%s", async (PIPELINE) => {
    const inbox = await open({ PIPELINE });
    const paid = anInvoiceEvent();
    const unusable = anInvoiceEvent("invoice.paid", { amountPaid: -1 });
    const unhandled = { ...anInvoiceEvent(), type: "customer.updated" };

    expect(await inbox.deliver(paid)).toMatchObject({ status: 200, outcome: "processed" });
    expect(await inbox.deliver(paid)).toMatchObject({ status: 200, outcome: "duplicate" });
    expect(await inbox.deliver(unusable)).toMatchObject({ status: 200, outcome: "needs_review" });
    expect(await inbox.deliver({ ...unhandled, id: "evt_unhandled" })).toMatchObject({
      status: 200,
      outcome: "ignored",
    });
    expect(await inbox.books()).toMatchObject({ inbox: 3, entries: 1, messages: 1 });
  });

  test("a crowd shares a few server connections, and each payment is booked once", async () => {
    const inbox = await open();
    const events = Array.from({ length: CROWD }, () => anInvoiceEvent());
    const answers = await Promise.all([...events, ...events].map((event) => inbox.deliver(event)));

    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
    expect(answers.filter(({ outcome }) => outcome === "processed")).toHaveLength(CROWD);
    expect(await inbox.books()).toMatchObject({ inbox: CROWD, entries: CROWD, messages: CROWD });
  });

  test("no setting of a transaction stays on a server connection", async () => {
    const inbox = await open({ RECEIVE_LOCK_TIMEOUT_MS: "1234" });
    await inbox.deliver(anInvoiceEvent());
    const seen = await query(
      throughPooler(inbox.databaseUrl),
      `select current_setting('lock_timeout') as lock_timeout,
        coalesce(current_setting('stripe_inbox.transaction', true), '') as marker`,
    );
    expect(seen).toEqual([{ lock_timeout: "0", marker: "" }]);
  });
});

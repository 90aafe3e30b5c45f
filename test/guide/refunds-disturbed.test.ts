/** What goes wrong on the way of a refund loses none, and books none twice. */
import { expect, test } from "vitest";
import type { Endpoints } from "../../src/endpoints.ts";
import { PermanentError } from "../../src/inbox/retry.ts";
import { startProxy } from "../local/proxy.ts";
import { anOperator } from "../worker/operator.ts";
import { openTestbed } from "../worker/testbed.ts";
import { withRefunds } from "./database.ts";
import { aRefund } from "./refund-events.ts";

test("what a handler refused is booked once it is mended, and requeued", async () => {
  const { endpoints, databaseUrl } = await withRefunds();
  const refusing: Endpoints = {
    billing: {
      secrets: "STRIPE_WEBHOOK_SECRET",
      accounts: "own",
      handlers: {
        "charge.refunded": () => {
          throw new PermanentError("not_written_yet");
        },
      },
    },
  };
  const before = await openTestbed({ endpoints: refusing, databaseUrl });
  const refund = aRefund({ id: "ch_1" });
  expect(await before.deliver(refund)).toMatchObject({ outcome: "needs_review" });

  const { inbox, send } = await anOperator({ endpoints, databaseUrl });
  const reason = "PermanentError:not_written_yet";
  const { status } = await send("/ops/api/events/requeue", { reason, count: 1, why: "written" });
  expect(status).toBe(200);
  expect(await inbox.tick()).toMatchObject({ processed: 1 });
  expect(await inbox.rows("select charge_id, amount from charge_refunds")).toEqual([
    { charge_id: "ch_1", amount: "1000" },
  ]);
});

test("what came before there was a handler is booked once it is requeued", async () => {
  const { endpoints, databaseUrl } = await withRefunds();
  const before = await openTestbed({ databaseUrl });
  await before.deliver(aRefund({ id: "ch_1" }));
  const { inbox, send } = await anOperator({ endpoints, databaseUrl });
  const order = { ignored_reason: "no_handler", count: 1, why: "written" };
  expect(await send("/ops/api/events/requeue", order)).toMatchObject({ status: 200 });
  expect(await inbox.tick()).toMatchObject({ processed: 1 });
  expect(await inbox.rows("select charge_id from charge_refunds")).toEqual([{ charge_id: "ch_1" }]);
});

test.each(["cut before", "cut after"] as const)(
  "%s any message of the conversation with Postgres, each refund is booked and told once",
  async (fate) => {
    const { endpoints, databaseUrl } = await withRefunds();
    let at = 0;
    let seen = 0;
    await using proxy = await startProxy(databaseUrl, {
      fate: () => (++seen === at ? fate : "pass"),
    });
    const inbox = await openTestbed({ endpoints, databaseUrl, route: proxy.route });
    do {
      at += 1;
      seen = 0;
      const refund = aRefund();
      let { status } = await inbox.deliver(refund);
      for (let n = 0; n < 5 && status !== 200; n++) ({ status } = await inbox.deliver(refund));
      expect(status).toBe(200);
      await proxy.idle();
    } while (seen >= at);
    expect(at).toBeGreaterThan(10);
    const [counts] = await inbox.rows(`select
      (select count(*) from charge_refunds)::int as refunds,
      (select count(*) from outbox)::int as messages`);
    expect(counts).toEqual({ refunds: at, messages: at });
  },
);

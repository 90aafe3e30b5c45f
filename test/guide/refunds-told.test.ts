/** The customer hears of a refund that was booked: once in effect, and of no other. */
import { expect, test } from "vitest";
import { journalRows, openOutbound, outboxRows } from "../db/outbox.ts";
import { withRefunds } from "./database.ts";
import { aRefund } from "./refund-events.ts";
import { consequences } from "./with-refunds.ts";

const open = async () => openOutbound({ ...(await withRefunds()), consequences });

test("a refund that was booked is told to its customer's metadata, once", async () => {
  const { inbox, queue, api, consume } = await open();
  const refund = aRefund({ id: "ch_1", amount_refunded: 2500 });
  await inbox.deliver(refund);
  expect(await consume(queue.messages)).toEqual(["ack"]);
  expect(await consume(queue.messages)).toEqual(["ack"]);
  const key = `webhook:${refund.id}:tell-customer-of-refund`;
  expect(api.calls).toMatchObject([{ key, customer: "cus_test" }]);
  expect([...new URLSearchParams(api.calls[0]?.parameters)]).toEqual([
    ["metadata[last_refunded_charge]", "ch_1"],
    ["metadata[last_refunded_amount]", "2500"],
    ["metadata[last_refunded_currency]", "eur"],
  ]);
  expect(await journalRows(inbox)).toMatchObject([{ key, state: "done", result: "updated" }]);
  expect(await outboxRows(inbox)).toMatchObject([{ done: true }]);
});

test("a charge without a customer has nobody to tell, and is done", async () => {
  const { inbox, queue, api, consume } = await open();
  await inbox.deliver(aRefund({ customer: null }));
  expect(await consume(queue.messages)).toEqual(["ack"]);
  expect(api.calls).toEqual([]);
  expect(await outboxRows(inbox)).toMatchObject([{ done: true }]);
});

test("one whose answer was lost is told again under the same key", async () => {
  const outbound = await openOutbound({
    ...(await withRefunds()),
    consequences,
    api: { fault: ({ n }) => (n === 1 ? "lose the answer" : null) },
  });
  const { inbox, queue, api, consume } = outbound;
  await inbox.deliver(aRefund());
  expect(await consume(queue.messages)).toEqual([{ delaySeconds: 2 }]);
  await inbox.rows("update call_journal set available_at = now()");
  expect(await consume(queue.messages)).toEqual(["ack"]);
  expect([...api.effects.values()]).toEqual([1]);
});

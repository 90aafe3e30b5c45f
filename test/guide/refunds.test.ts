/** Refunds and credit notes are booked once, whatever comes how often, and in which order. */
import { expect, test } from "vitest";
import { anInvoiceEvent } from "../local/index.ts";
import { openTestbed, type Testbed } from "../worker/testbed.ts";
import { withRefunds } from "./database.ts";
import { aCreditNote, aRefund } from "./refund-events.ts";

const refunds = (inbox: Testbed) => inbox.rows("select charge_id, amount from charge_refunds");
const notes = (inbox: Testbed) => inbox.rows("select id, given_back from credit_notes");
const told = (inbox: Testbed) => inbox.rows("select payload -> 'amount' as amount from outbox");
const whyWaiting = (inbox: Testbed) =>
  inbox.rows(`select last_error, parked_at is not null as parked from webhook_inbox
    where processed_at is null`);

test("the books hold what was refunded of a charge in all, in whatever order that is told", async () => {
  const inbox = await openTestbed(await withRefunds());
  const early = aRefund({ id: "ch_1", amount_refunded: 1000 });
  const late = aRefund({ id: "ch_1", amount_refunded: 2500 });
  expect(await inbox.deliver(late)).toMatchObject({ status: 200, outcome: "processed" });
  expect(await inbox.deliver(early)).toMatchObject({ status: 200, outcome: "processed" });
  expect(await refunds(inbox)).toEqual([{ charge_id: "ch_1", amount: "2500" }]);
  // Of what was not written, nothing is told.
  expect(await told(inbox)).toEqual([{ amount: 2500 }]);
});

test("in Stripe's order, each part is told", async () => {
  const inbox = await openTestbed(await withRefunds());
  for (const amount_refunded of [1000, 2500]) {
    await inbox.deliver(aRefund({ id: "ch_1", amount_refunded }));
  }
  expect(await refunds(inbox)).toEqual([{ charge_id: "ch_1", amount: "2500" }]);
  expect(await told(inbox)).toEqual([{ amount: 1000 }, { amount: 2500 }]);
});

test("an event that comes twice, and another one that says the same, change nothing", async () => {
  const inbox = await openTestbed(await withRefunds());
  const refund = aRefund({ id: "ch_1" });
  await inbox.deliver(refund);
  expect(await inbox.deliver(refund)).toMatchObject({ outcome: "duplicate" });
  expect(await inbox.deliver(aRefund({ id: "ch_1" }))).toMatchObject({ outcome: "processed" });
  expect(await refunds(inbox)).toEqual([{ charge_id: "ch_1", amount: "1000" }]);
  expect(await told(inbox)).toEqual([{ amount: 1000 }]);
});

test("of ten at once, the books hold the most", async () => {
  const inbox = await openTestbed(await withRefunds());
  const events = Array.from({ length: 10 }, (_, n) =>
    aRefund({ id: "ch_1", amount_refunded: 100 * (n + 1) }),
  );
  const answers = await Promise.all([...events, ...events].map((event) => inbox.deliver(event)));
  expect(answers.filter(({ status }) => status !== 200)).toEqual([]);
  expect(await refunds(inbox)).toEqual([{ charge_id: "ch_1", amount: "1000" }]);
  const amounts = (await told(inbox)).map(({ amount }) => Number(amount));
  expect(amounts).toEqual([...new Set(amounts)]);
  expect(amounts).toContain(1000);
});

test("so they do where a tick books them, many in one transaction", async () => {
  const inbox = await openTestbed({ ...(await withRefunds()), env: { PROCESSING: "paused" } });
  for (const amount_refunded of [500, 2500, 1000]) {
    const refund = aRefund({ id: "ch_1", amount_refunded });
    expect(await inbox.deliver(refund)).toMatchObject({ outcome: "stored" });
  }
  const counts = await inbox.tick({ PROCESSING: "on" });
  expect(counts).toMatchObject({ processed: 3, failed: 0 });
  expect(await refunds(inbox)).toEqual([{ charge_id: "ch_1", amount: "2500" }]);
});

test.each([-1, 0.5, "1000", 2 ** 53, null, undefined])(
  "an amount of %j is parked, and nothing is booked",
  async (amount_refunded) => {
    const inbox = await openTestbed(await withRefunds());
    const refund = aRefund({ amount_refunded });
    expect(await inbox.deliver(refund)).toMatchObject({ status: 200, outcome: "needs_review" });
    const last_error = "PermanentError:amount_refunded_unusable";
    expect(await whyWaiting(inbox)).toEqual([{ last_error, parked: true }]);
    expect(await refunds(inbox)).toEqual([]);
  },
);

test("what a CHECK refuses is tried again, and parked in the end", async () => {
  const inbox = await openTestbed({ ...(await withRefunds()), env: { MAX_ATTEMPTS: "2" } });
  const refund = aRefund({ currency: "euros" });
  expect(await inbox.deliver(refund)).toMatchObject({ status: 500, outcome: "failed" });
  expect(await whyWaiting(inbox)).toEqual([{ last_error: "23514", parked: false }]);
  expect(await inbox.deliver(refund)).toMatchObject({ status: 200, outcome: "needs_review" });
  expect(await whyWaiting(inbox)).toEqual([{ last_error: "23514", parked: true }]);
  expect(await refunds(inbox)).toEqual([]);
});

test("a refund of nothing books nothing", async () => {
  const inbox = await openTestbed(await withRefunds());
  const refund = aRefund({ amount_refunded: 0 });
  expect(await inbox.deliver(refund)).toMatchObject({ outcome: "processed" });
  expect(await refunds(inbox)).toEqual([]);
});

test("a credit note of an open invoice is booked once, and gives nothing back", async () => {
  const inbox = await openTestbed(await withRefunds());
  for (const event of [aCreditNote({ id: "cn_1" }), aCreditNote({ id: "cn_1" })]) {
    expect(await inbox.deliver(event)).toMatchObject({ outcome: "processed" });
  }
  expect(await notes(inbox)).toEqual([{ id: "cn_1", given_back: "0" }]);
});

test("one that gives money back waits until its invoice is paid here", async () => {
  const inbox = await openTestbed(await withRefunds());
  const note = aCreditNote({ id: "cn_1", invoice: "in_1", post_payment_amount: 600 });
  expect(await inbox.deliver(note)).toMatchObject({ status: 500, outcome: "failed" });
  expect(await whyWaiting(inbox)).toEqual([{ last_error: "InvoiceNotPaidYet", parked: false }]);
  await inbox.deliver(anInvoiceEvent("invoice.paid", { id: "in_1" }));
  expect(await inbox.deliver(note)).toMatchObject({ status: 200, outcome: "processed" });
  expect(await notes(inbox)).toEqual([{ id: "cn_1", given_back: "600" }]);
});

test.each([
  ["pre_payment", "0"],
  ["post_payment", "1000"],
])("in an API version that only says %s, it gives %s back", async (type, given_back) => {
  const inbox = await openTestbed(await withRefunds());
  await inbox.deliver(anInvoiceEvent("invoice.paid", { id: "in_1" }));
  const parts = { pre_payment_amount: undefined, post_payment_amount: undefined };
  await inbox.deliver(aCreditNote({ id: "cn_1", invoice: "in_1", type, ...parts }));
  expect(await notes(inbox)).toEqual([{ id: "cn_1", given_back }]);
});

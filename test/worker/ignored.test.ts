/** Stripe's fixed test ids, and which reason is given when several apply. */
import { beforeAll, describe, expect, test } from "vitest";
import { anInvoiceEvent, freshId, openTestbed, type Testbed } from "./testbed.ts";

const FIXED = "evt_00000000000000";
const withId = (id: string, type?: "invoice.paid" | "invoice.voided") =>
  anInvoiceEvent(type, {}, { id });
const reasons = (inbox: Testbed) =>
  inbox.rows("select event_id, event_type, ignored_reason from webhook_inbox");

describe("a fixed test id", () => {
  test("is recorded once, and ignored at every delivery, whatever the type", async () => {
    const inbox = await openTestbed();
    for (const type of ["invoice.paid", "invoice.voided", "invoice.paid"] as const) {
      expect(await inbox.deliver(withId(FIXED, type))).toEqual(
        expect.objectContaining({ status: 200, outcome: "ignored", event: FIXED }),
      );
    }
    expect(await reasons(inbox)).toEqual([
      { event_id: FIXED, event_type: "invoice.paid", ignored_reason: "test_id" },
    ]);
    expect(await inbox.rows("select duplicates from webhook_inbox")).toEqual([{ duplicates: 2 }]);
    expect(await inbox.deliver(anInvoiceEvent())).toMatchObject({ outcome: "processed" });
    expect(await inbox.books()).toMatchObject({ inbox: 2, invoices: 1, entries: 1, messages: 1 });
  });

  test("has a row of its own at each endpoint", async () => {
    const inbox = await openTestbed();
    await inbox.deliver(withId(FIXED));
    expect(await inbox.deliver(withId(FIXED), { endpoint: "connect" })).toMatchObject({
      outcome: "ignored",
    });
    expect(await inbox.books()).toMatchObject({ inbox: 2, entries: 0 });
  });

  let inbox: Testbed;
  beforeAll(async () => void (inbox = await openTestbed()));
  test.each([
    { id: `evt_${"0".repeat(14)}`, fixed: true },
    { id: `evt_${"0".repeat(24)}`, fixed: true },
    { id: `evt_1Qinvented_${"0".repeat(14)}`, fixed: true },
    { id: `we_${"0".repeat(14)}`, fixed: true },
    { id: `evt_${"0".repeat(13)}`, fixed: false },
    { id: `evt_${"0".repeat(14)}1`, fixed: false },
    { id: `evt_1${"0".repeat(14)}`, fixed: false },
    { id: `evt_x_${"0".repeat(13)}`, fixed: false },
    { id: `evt_x_${"0".repeat(15)}`, fixed: false },
    { id: `x_evt_${"0".repeat(14)}x`, fixed: false },
  ])("$id is one: $fixed", async ({ id, fixed }) => {
    const [first, again] = fixed ? ["ignored", "ignored"] : ["processed", "duplicate"];
    expect(await inbox.deliver(withId(id))).toMatchObject({ status: 200, outcome: first });
    expect(await inbox.deliver(withId(id))).toMatchObject({ status: 200, outcome: again });
    const row = "select ignored_reason from webhook_inbox where event_id = $1";
    expect(await inbox.rows(row, [id])).toEqual([{ ignored_reason: fixed ? "test_id" : null }]);
  });
});

test("when several reasons apply the first in order is given", async () => {
  const inbox = await openTestbed({ env: { STRIPE_LIVEMODE: "true" } });
  const everything = {
    ...anInvoiceEvent(),
    id: FIXED,
    object: "v2.core.event",
    livemode: false,
    account: "acct_invented",
    type: "totally.new_event",
  };
  // Each takes away the reason before it.
  const thin = { ...everything, id: freshId("evt") };
  const livemode = { ...thin, id: freshId("evt"), object: "event" };
  const account = { ...livemode, id: freshId("evt"), livemode: true };
  const noHandler = { ...account, id: freshId("evt"), account: null };
  const wanted = { ...noHandler, id: freshId("evt"), type: "invoice.paid" };
  for (const event of [everything, thin, livemode, account, noHandler, wanted]) {
    expect(await inbox.deliver(event)).toMatchObject({ status: 200, event: event.id });
  }
  const given = await inbox.rows("select ignored_reason from webhook_inbox order by received_at");
  expect(given.map((row) => row["ignored_reason"])).toEqual([
    "test_id",
    "thin",
    "livemode",
    "account",
    "no_handler",
    null,
  ]);
  expect(await inbox.books()).toMatchObject({ inbox: 6, invoices: 1, entries: 1 });
});

/** What Stripe knows and the inbox does not is found, stored once, processed, and on record. */
import { expect, test } from "vitest";
import { invoiceHandlers } from "../../src/billing/handlers.ts";
import { anInvoiceEvent, logLines } from "../worker/testbed.ts";
import {
  aPayment,
  BILLING,
  BOTH,
  HOUR,
  openReconciled,
  somePayments,
  sweepRows,
} from "./reconciled.ts";

const RUN = { account: "own", last_error: null, failures: 0, complete: true };

test("an event that was never delivered is stored as due, its gap on record; the next tick books it", async () => {
  const { inbox, happened } = await openReconciled();
  const [delivered, missed] = [aPayment(), aPayment()];
  await inbox.deliver(delivered);
  happened(HOUR, delivered, missed);

  await inbox.tick();
  expect(
    await inbox.rows(`select event_id, endpoint, event_type, object_id, attempts,
      processed_at is null as waits, payload ->> 'id' as id from webhook_inbox
      where processed_at is null`),
  ).toEqual([
    {
      event_id: missed.id,
      endpoint: "billing",
      event_type: "invoice.paid",
      object_id: missed.data?.object["id"],
      attempts: 0,
      waits: true,
      id: missed.id,
    },
  ]);
  expect(
    await inbox.rows(`select endpoint, event_id, event_type, run_id,
      round(extract(epoch from found_at - created_at) / 60)::int as late_minutes from sweep_gaps`),
  ).toEqual([
    {
      endpoint: "billing",
      event_id: missed.id,
      event_type: "invoice.paid",
      run_id: "1",
      late_minutes: 60,
    },
  ]);
  expect(await sweepRows({ inbox })).toEqual([{ ...RUN, pages: 1, events: 2, missing: 1 }]);

  expect(await inbox.tick()).toMatchObject({ processed: 1 });
  expect(await inbox.books()).toMatchObject({ inbox: 2, entries: 2, messages: 2 });
  expect(await inbox.deliver(missed)).toMatchObject({ status: 200, outcome: "duplicate" });
});

test("livemode, the account and the types with a handler decide where an event belongs", async () => {
  const endpoints = {
    billing: BILLING,
    second: { ...BILLING, livemode: false },
    live: { ...BILLING, livemode: true },
  };
  const { inbox, happened } = await openReconciled({ endpoints });
  const event = aPayment();
  const unwanted = { ...aPayment(), type: "customer.updated" };
  const dashboard = { ...aPayment(), id: "evt_00000000000000" };
  happened(HOUR, event, unwanted, dashboard);
  await inbox.tick();
  expect(await inbox.rows("select endpoint, event_id from webhook_inbox order by 1")).toEqual([
    { endpoint: "billing", event_id: event.id },
    { endpoint: "second", event_id: event.id },
  ]);
});

test("an endpoint that lacks an event gets it, though another has it", async () => {
  const endpoints = { billing: BILLING, second: BILLING };
  const { inbox, happened } = await openReconciled({ endpoints });
  const event = aPayment();
  await inbox.deliver(event);
  happened(HOUR, event);
  await inbox.tick();
  expect(await inbox.rows("select endpoint from sweep_gaps")).toEqual([{ endpoint: "second" }]);
});

test("connected accounts are walked one by one, each for the endpoints of connected accounts", async () => {
  const { inbox, api, happened, settle } = await openReconciled({
    endpoints: BOTH,
    env: { STRIPE_CONNECTED_ACCOUNTS: "acct_1, acct_2" },
  });
  const own = aPayment();
  const theirs = aPayment("invoice.paid", {}, { account: "acct_2" });
  const stranger = aPayment("invoice.paid", {}, { account: "acct_3" });
  happened(HOUR, own, theirs, stranger);
  await settle();
  expect(
    await inbox.rows(`select endpoint, event_id, outcome, payload ->> 'account' as account
      from webhook_inbox order by 1`),
  ).toEqual([
    { endpoint: "billing", event_id: own.id, outcome: "processed", account: null },
    { endpoint: "connect", event_id: theirs.id, outcome: "processed", account: "acct_2" },
  ]);
  expect(new Set(api.lists.requests.map(({ account }) => account))).toEqual(
    new Set([null, "acct_1", "acct_2"]),
  );
  expect(api.lists.requests).toHaveLength(3);
});

test("a walk goes through all pages, and asks for the types with a handler alone", async () => {
  const { inbox, api, happened, settle } = await openReconciled();
  for (let minutes = 20; minutes < 25; minutes++) happened({ minutes }, ...somePayments(50));
  happened(HOUR, { ...aPayment(), type: "customer.updated" });
  await settle();
  expect(await inbox.books()).toMatchObject({ inbox: 250, entries: 250 });
  expect(await sweepRows({ inbox })).toEqual([{ ...RUN, pages: 3, events: 250, missing: 250 }]);
  expect(api.lists.requests).toHaveLength(3);
});

test("numbers keep every digit", async () => {
  const { inbox, happened } = await openReconciled();
  const json: typeof JSON & { rawJSON?: (text: string) => unknown } = JSON;
  const number = (text: string): unknown => json.rawJSON?.(text);
  const event = aPayment();
  const object = {
    ...event.data?.object,
    tax: number("1.10"),
    big: number("12345678901234567890"),
  };
  happened(HOUR, { ...event, data: { object } });
  await inbox.tick();
  expect(
    await inbox.rows(`select payload #>> '{data,object,tax}' as tax,
      payload #>> '{data,object,big}' as big, payload_altered as altered from webhook_inbox`),
  ).toEqual([{ tax: "1.10", big: "12345678901234567890", altered: false }]);
});

test("a key of the other mode is a failure, and no complete sweep", async () => {
  const reconciled = await openReconciled({ env: { STRIPE_LIVEMODE: "true" } });
  reconciled.happened(HOUR, aPayment());
  await reconciled.inbox.tick();
  expect(await sweepRows(reconciled)).toMatchObject([
    { complete: false, last_error: "WrongMode", missing: 0 },
  ]);
});

test("more types than Stripe can be asked for are all asked for", async () => {
  const types = Array.from({ length: 21 }, (_, n) => [`invoice.made_up_${n}`, () => []]);
  const handlers = { ...invoiceHandlers, ...Object.fromEntries(types) };
  const { inbox, api, happened } = await openReconciled({
    endpoints: { billing: { ...BILLING, handlers } },
  });
  happened(HOUR, aPayment(), { ...aPayment(), type: "customer.updated" });
  await inbox.tick();
  expect(await inbox.books()).toMatchObject({ inbox: 1 });
  expect(String(api.lists.requests[0]?.parameters)).not.toContain("types");
});

test("two ticks at once walk together or in turn, and store each event once", async () => {
  const { inbox, happened, settle } = await openReconciled();
  happened(HOUR, ...somePayments(150));
  await Promise.all([inbox.tick(), inbox.tick(), inbox.tick()]);
  await settle();
  expect(await inbox.books()).toMatchObject({ inbox: 150, entries: 150 });
  expect(await sweepRows({ inbox })).toMatchObject([{ ...RUN, missing: 150 }]);
});

test.each([
  ["no API key is set", { STRIPE_API_KEY: undefined }],
  ["the API key is empty", { STRIPE_API_KEY: "" }],
  ["it is switched off", { SWEEP_INTERVAL_MINUTES: "0" }],
])("nothing is swept where %s", async (_, env) => {
  const { inbox, api, happened } = await openReconciled({ env });
  happened(HOUR, aPayment());
  await inbox.tick();
  expect(api.lists.requests).toEqual([]);
  expect(await sweepRows({ inbox })).toEqual([]);
});

test("while processing is paused, what was missed is stored all the same", async () => {
  const { inbox, happened } = await openReconciled({ env: { PROCESSING: "paused" } });
  happened(HOUR, aPayment());
  await inbox.tick();
  await inbox.tick();
  expect(await inbox.books()).toMatchObject({ inbox: 1, entries: 0 });
  await inbox.tick({ PROCESSING: "on" });
  expect(await inbox.books()).toMatchObject({ entries: 1 });
});

test("a gap is told in the log by ids and types alone", async () => {
  const { inbox, happened } = await openReconciled();
  const event = anInvoiceEvent();
  happened(HOUR, event);
  const lines = await logLines(() => inbox.tick());
  expect(lines.filter(({ message }) => message !== "tick")).toEqual([
    {
      level: "warn",
      message: "sweep_gap",
      endpoint: "billing",
      id: event.id,
      type: "invoice.paid",
      late_seconds: expect.any(Number),
    },
    {
      level: "info",
      message: "sweep",
      account: "own",
      pages: 1,
      events: 1,
      missing: 1,
      ms: expect.any(Number),
    },
  ]);
});

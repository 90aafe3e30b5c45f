/** What Stripe knows and the inbox does not is found, stored once, processed, and on record. */
import { expect, test } from "vitest";
import { invoiceHandlers } from "../../src/billing/handlers.ts";
import { type Endpoint, endpoints as shipped } from "../../src/endpoints.ts";
import { runCli } from "./cli.ts";
import { anInvoiceEvent, logLines } from "../worker/testbed.ts";
import {
  aPayment,
  HOUR,
  openReconciled,
  somePayments,
  sweepRows,
  sweepsAge,
} from "./reconciled.ts";

const BILLING: Endpoint = {
  secrets: "STRIPE_WEBHOOK_SECRET",
  accounts: "own",
  handlers: invoiceHandlers,
};
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

test("what is on its way is left alone for 15 minutes; what is 29 days old is found", async () => {
  const { inbox, happened } = await openReconciled();
  const [young, ripe, old] = [aPayment(), aPayment(), aPayment()];
  happened({ minutes: 14 }, young);
  happened({ minutes: 16 }, ripe);
  happened({ minutes: 29 * 24 * 60 }, old);
  await inbox.tick();
  const stored = await inbox.rows("select event_id from webhook_inbox");
  expect(new Set(stored.map((row) => row["event_id"]))).toEqual(new Set([ripe.id, old.id]));
});

test("SWEEP_SINCE says what was before us", async () => {
  const { inbox, happened } = await openReconciled({
    env: { SWEEP_SINCE: new Date(Date.now() - 5 * 86_400_000).toISOString().slice(0, 10) },
  });
  happened({ minutes: 4 * 24 * 60 }, aPayment());
  happened({ minutes: 7 * 24 * 60 }, aPayment());
  await inbox.tick();
  expect(await inbox.books()).toMatchObject({ inbox: 1 });
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
  const handlers = invoiceHandlers;
  const connect = {
    secrets: "STRIPE_CONNECT_WEBHOOK_SECRET",
    accounts: "connected",
    handlers,
  } as const;
  const { inbox, api, happened, settle } = await openReconciled({
    endpoints: { ...shipped, connect },
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

test("the next walk begins an hour later, an hour before where the last one ended", async () => {
  const reconciled = await openReconciled();
  const { inbox, api, happened } = reconciled;
  await inbox.tick();
  happened(HOUR, aPayment());
  await inbox.tick();
  expect(api.lists.requests).toHaveLength(1);
  await sweepsAge(reconciled, "59 minutes");
  await inbox.tick();
  expect(api.lists.requests).toHaveLength(1);
  await sweepsAge(reconciled, "2 minutes");
  await inbox.tick();
  expect(await sweepRows(reconciled)).toMatchObject([{ missing: 0 }, { missing: 1, events: 1 }]);
  const overlap =
    await inbox.rows(`select extract(epoch from first.window_to - next.window_from)::int
    as seconds from sweep_runs first, sweep_runs next where first.id = 1 and next.id = 2`);
  expect(overlap).toEqual([{ seconds: 3_600 }]);
});

test("a sweep that a person asks for begins at once, from the day given, and begins anew one under way", async () => {
  const reconciled = await openReconciled();
  const { inbox, happened, settle } = reconciled;
  await inbox.tick();
  happened({ minutes: 10 * 24 * 60 }, aPayment());
  const since = new Date(Date.now() - 20 * 86_400_000);
  const ran = await runCli("sweep", inbox, "--since", since.toISOString().slice(0, 10));
  expect(ran).toMatchObject({ status: 0, text: expect.stringContaining("next tick") });
  await settle();
  expect(await sweepRows(reconciled)).toMatchObject([{ missing: 0 }, { missing: 1 }]);
  expect(await inbox.books()).toMatchObject({ entries: 1 });

  await inbox.rows(`insert into sweep_runs (account, window_from, window_to, cursor, pages)
    values ('own', now() - interval '1 hour', now() - interval '30 minutes', 'evt_x', 4)`);
  await runCli("sweep", inbox, "--since", since.toISOString().slice(0, 10));
  expect(
    await inbox.rows(`select cursor, window_from < now() - interval '19 days' as wide
      from sweep_runs where completed_at is null`),
  ).toEqual([{ cursor: null, wide: true }]);
});

test("a sweep that is asked for leaves no hole behind the last complete one", async () => {
  const reconciled = await openReconciled();
  const { inbox, happened, settle } = reconciled;
  await inbox.tick();
  await sweepsAge(reconciled, "5 days");
  happened({ minutes: 3 * 24 * 60 }, aPayment());
  await runCli("sweep", inbox, "--since", "1d");
  await settle();
  expect(await inbox.books()).toMatchObject({ entries: 1 });
});

test("one that is asked for before any was complete goes as far back as any", async () => {
  const { inbox, happened, settle } = await openReconciled();
  happened({ minutes: 20 * 24 * 60 }, aPayment());
  await runCli("sweep", inbox, "--since", "1d");
  await settle();
  expect(await inbox.books()).toMatchObject({ entries: 1 });
});

test("no sweep reaches behind the time for which keys are kept", async () => {
  const { inbox, happened, settle } = await openReconciled({
    env: { RETENTION_DAYS: "7", TOMBSTONE_DAYS: "7" },
  });
  const [forgotten, known] = [aPayment(), aPayment()];
  happened({ minutes: 7 * 24 * 60 }, forgotten);
  happened({ minutes: 5 * 24 * 60 }, known);
  await runCli("sweep", inbox, "--since", "20d");
  await settle();
  expect(await inbox.rows("select event_id from sweep_gaps")).toEqual([{ event_id: known.id }]);
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

test.each([
  ["no day", []],
  ["what is no day", ["--since", "last week"]],
  ["a day to come", ["--since", "2999-01-01"]],
  ["no account's id", ["--since", "2026-11-01", "--account", "cus_1"]],
  ["an account that nobody sweeps", ["--since", "2026-11-01", "--account", "acct_1"]],
])("a sweep from %s is refused, with the help", async (_, flags) => {
  const { inbox } = await openReconciled();
  const ran = await runCli("sweep", inbox, ...flags);
  expect(ran).toMatchObject({
    status: 1,
    text: expect.stringContaining("npm run sweep -- --since"),
  });
  expect(await sweepRows({ inbox })).toEqual([]);
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

test.each([
  ["26 days", ["sweep_overdue"]],
  ["24 days", []],
])("a last complete sweep of %s ago is %j", async (ago, said) => {
  let failing = false;
  const reconciled = await openReconciled({
    api: { listFault: () => (failing ? { status: 500 } : null) },
  });
  const { inbox } = reconciled;
  await inbox.tick();
  await sweepsAge(reconciled, ago);
  failing = true;
  const lines = await logLines(() => inbox.tick());
  const overdue = lines.filter(({ message }) => message === "sweep_overdue");
  expect(overdue.map(({ message }) => message)).toEqual(said);
  for (const line of overdue) {
    expect(line).toMatchObject({ level: "error", account: "own", days: 26, error: "Stripe:500" });
  }
});

/** A sweep can end anywhere, and be gone on with; whatever goes wrong on the way, the end is the same. */
import { expect, test } from "vitest";
import { invoiceHandlers } from "../../src/billing/handlers.ts";
import { claimSweep, sweepPage } from "../../src/reconcile/sweep.ts";
import { eventLists } from "../../src/stripe/lists.ts";
import { query } from "../worker/testbed.ts";
import { openConnection } from "./holders.ts";
import {
  aPayment,
  BOTH,
  HOUR,
  openReconciled,
  somePayments,
  sweepRows,
  type Reconciled,
} from "./reconciled.ts";

const EVENTS = 250;
const PAGES = 3;
const POLICY = {
  reach: { intervalMinutes: 60, days: 30, since: null },
  connectedAccounts: [],
  timeouts: { lockTimeoutMs: 3_000, statementTimeoutMs: 5_000 },
  leaseSeconds: 60,
  backoffCapSeconds: 300,
};
const COMPLETE = { missing: EVENTS, events: EVENTS, pages: PAGES, complete: true };

async function timePasses({ inbox }: Pick<Reconciled, "inbox">): Promise<void> {
  await inbox.rows("update sweep_runs set available_at = now()");
}

test.each([1, 2, 3])(
  "killed at page %i and run again, it comes to the same end",
  async (killedAt) => {
    let databaseUrl = "";
    const reconciled = await openReconciled({
      api: {
        listFault: async ({ n }) => {
          if (n === killedAt) {
            await query(
              databaseUrl,
              `select pg_terminate_backend(pid, 5000) from pg_stat_activity
              where datname = current_database() and application_name = 'stripe-inbox'`,
            );
          }
          return null;
        },
      },
    });
    const { inbox, api, happened, settle } = reconciled;
    databaseUrl = inbox.databaseUrl;
    happened(HOUR, ...somePayments(EVENTS));
    await inbox.tick();
    const [killed] = await sweepRows(reconciled);
    expect(killed).toMatchObject({ complete: false, pages: killedAt - 1 });
    await timePasses(reconciled);
    await settle();
    // The page that was under way, and no other, is read again: a small piece of it, and the rest.
    expect(await sweepRows(reconciled)).toMatchObject([{ ...COMPLETE, pages: PAGES + 1 }]);
    expect(api.lists.requests).toHaveLength(PAGES + 2);
    expect(await inbox.books()).toMatchObject({ inbox: EVENTS, entries: EVENTS, messages: EVENTS });
  },
);

test.each([
  ["rate-limited", { status: 429, retryAfterSeconds: 70 }, "Stripe:429", 70],
  ["failed by Stripe", { status: 500 }, "Stripe:500", 0],
  ["cut off", "lose the answer", "StripeConnectionError", 0],
  ["refused for our key", { status: 401 }, "Stripe:401", 0],
] as const)("a walk that is %s waits, and goes on from there", async (_, fault, code, seconds) => {
  const reconciled = await openReconciled({
    api: { listFault: ({ n }) => (n === 2 ? fault : null) },
  });
  const { inbox, api, happened, settle } = reconciled;
  happened(HOUR, ...somePayments(EVENTS));
  await inbox.tick();
  expect(await sweepRows(reconciled)).toMatchObject([
    { complete: false, pages: 1, failures: 1, last_error: code },
  ]);
  const [waits] = await inbox.rows(
    "select ceil(extract(epoch from available_at - now()))::int as seconds from sweep_runs",
  );
  expect(waits?.["seconds"]).toBeGreaterThan(seconds - 10);
  await timePasses(reconciled);
  await settle();
  expect(await sweepRows(reconciled)).toMatchObject([
    { ...COMPLETE, failures: 0, last_error: null },
  ]);
  expect(await inbox.books()).toMatchObject({ inbox: EVENTS, entries: EVENTS });
  expect(api.lists.requests).toHaveLength(PAGES + 1);
});

const GOOD = { ...aPayment(), created: Math.floor(Date.now() / 1_000) - 3_600 };

function pageOf(data: readonly unknown[], hasMore: unknown = false) {
  return { status: 200, body: { object: "list", data, has_more: hasMore } };
}

test.each([
  ["has no id", { ...GOOD, id: undefined }],
  ["is null", null],
  ["has an id with U+0000", { ...GOOD, id: "evt_\u0000" }],
  ["has an id of 5,000 characters", { ...GOOD, id: "e".repeat(5_000) }],
  ["has no type", { ...GOOD, id: "evt_untyped", type: undefined }],
  ["was created in the year 318857", { ...GOOD, id: "evt_late", created: 9_999_999_999_999 }],
  ["was created before 1970", { ...GOOD, id: "evt_early", created: -5 }],
  ["has no object", { ...GOOD, id: "evt_empty", data: {} }],
])("an event that %s is passed over and counted; its neighbours are found", async (_, odd) => {
  const reconciled = await openReconciled({ api: { listFault: () => pageOf([odd, GOOD, GOOD]) } });
  const { inbox } = reconciled;
  await inbox.tick();
  expect(await inbox.rows("select missing, unusable, last_error from sweep_runs")).toEqual([
    { missing: 1, unusable: 1, last_error: null },
  ]);
  expect(await inbox.rows("select event_id from webhook_inbox")).toEqual([{ event_id: GOOD.id }]);
});

test.each([
  ["is no list", { status: 200, body: { data: null, has_more: false } }, "UnreadablePage"],
  ["goes on behind nothing", pageOf([], true), "ListStandsStill"],
  ["goes on behind what has no id", pageOf([GOOD, {}], true), "ListStandsStill"],
] as const)("a page that %s is a failure on record", async (_, answer, code) => {
  const reconciled = await openReconciled({ api: { listFault: () => answer } });
  await reconciled.inbox.tick();
  expect(await sweepRows(reconciled)).toMatchObject([
    { complete: false, failures: 1, last_error: code },
  ]);
});

test("a list that stands still is left, and not walked for ever", async () => {
  const reconciled = await openReconciled({ api: { listFault: () => pageOf([GOOD], true) } });
  await reconciled.inbox.tick();
  expect(await sweepRows(reconciled)).toMatchObject([
    { complete: false, pages: 1, failures: 1, last_error: "ListStandsStill" },
  ]);
  expect(reconciled.api.lists.requests).toHaveLength(2);
});

test("what the database refuses is a failure on record", async () => {
  const reconciled = await openReconciled();
  const { inbox, happened } = reconciled;
  happened(HOUR, ...somePayments(1));
  await inbox.rows("alter table sweep_gaps add check (run_id < 0)");
  await inbox.tick();
  expect(await sweepRows(reconciled)).toMatchObject([{ complete: false, last_error: "23514" }]);
  expect(await inbox.books()).toMatchObject({ inbox: 0 });
});

test("a page that ends the Worker shows, and is asked for in smaller pieces", async () => {
  const reconciled = await openReconciled();
  const { inbox, api, happened, settle } = reconciled;
  happened(HOUR, ...somePayments(120));
  const db = await openConnection(inbox.databaseUrl);
  for (let crashes = 0; crashes < 2; crashes++) {
    await claimSweep(db, POLICY);
    await timePasses(reconciled);
  }
  expect(await sweepRows(reconciled)).toMatchObject([{ failures: 1, last_error: "Crashed" }]);
  await settle();
  expect(api.lists.requests.map(({ parameters }) => parameters.get("limit"))).toEqual([
    "10",
    "100",
    "100",
  ]);
  expect(await inbox.books()).toMatchObject({ inbox: 120, entries: 120 });
});

test("nobody waits for longer than an hour because Stripe said so", async () => {
  const fault = { status: 429, retryAfterSeconds: 99_999_999 };
  const { inbox } = await openReconciled({ api: { listFault: () => fault } });
  await inbox.tick();
  const [row] = await inbox.rows(
    "select ceil(extract(epoch from available_at - now()))::int as seconds from sweep_runs",
  );
  expect(row?.["seconds"]).toBeLessThanOrEqual(3_600);
});

test("while it waits for Stripe, it is left alone", async () => {
  const fault = { status: 429, retryAfterSeconds: 70 };
  const { inbox, api } = await openReconciled({ api: { listFault: () => fault } });
  await inbox.tick();
  await inbox.tick();
  expect(api.lists.requests).toHaveLength(1);
});

test("a walk whose last event Stripe no longer knows begins anew", async () => {
  const reconciled = await openReconciled({
    api: { listFault: ({ n }) => (n === 2 ? { status: 400 } : null) },
  });
  const { inbox, api, happened, settle } = reconciled;
  happened(HOUR, ...somePayments(EVENTS));
  await inbox.tick();
  await timePasses(reconciled);
  await settle();
  expect(api.lists.requests.map(({ parameters }) => parameters.has("starting_after"))).toEqual([
    false,
    true,
    false,
    true,
    true,
  ]);
  expect(await inbox.books()).toMatchObject({ inbox: EVENTS, entries: EVENTS });
});

test("who stalled past the lease changes nothing of the walk, and stores nothing twice", async () => {
  const reconciled = await openReconciled();
  const { inbox, api, happened, settle } = reconciled;
  happened(HOUR, ...somePayments(EVENTS));
  const late = await openConnection(inbox.databaseUrl);
  const run = await claimSweep(late, POLICY);
  await timePasses(reconciled);
  await settle();
  const rules = [
    { name: "billing", livemode: null, accounts: "own", handlers: invoiceHandlers },
  ] as const;
  const list = eventLists({ key: "sk_test_made_up", url: new URL(api.url) });
  expect(run && (await sweepPage(late, run, list, rules, POLICY))).toMatchObject({
    gaps: [],
    next: null,
  });
  expect(await sweepRows(reconciled)).toMatchObject([{ ...COMPLETE, pages: PAGES + 1 }]);
  expect(await inbox.books()).toMatchObject({ inbox: EVENTS, entries: EVENTS });
});

test("one account that cannot be read keeps no other from being swept", async () => {
  const reconciled = await openReconciled({
    endpoints: BOTH,
    env: { STRIPE_CONNECTED_ACCOUNTS: "acct_gone" },
    api: { listFault: ({ account }) => (account === null ? null : { status: 403 }) },
  });
  reconciled.happened(HOUR, ...somePayments(1));
  await reconciled.inbox.tick();
  expect(await sweepRows(reconciled)).toMatchObject([
    { account: "own", complete: true, missing: 1 },
    { account: "acct_gone", complete: false, last_error: "Stripe:403" },
  ]);
});

test("a failing sweep is a line in the log, and ends no tick", async () => {
  const { inbox } = await openReconciled({
    env: { STRIPE_API_URL: "http://127.0.0.1:1" },
  });
  expect(await inbox.tick()).toMatchObject({ processed: 0 });
  expect(await sweepRows({ inbox })).toMatchObject([{ last_error: "StripeConnectionError" }]);
});

/** A sweep can end anywhere, and be gone on with; whatever goes wrong on the way, the end is the same. */
import { expect, test } from "vitest";
import { invoiceHandlers } from "../../src/billing/handlers.ts";
import { claimSweep, sweepPage } from "../../src/reconcile/sweep.ts";
import { eventLists } from "../../src/stripe/lists.ts";
import { query } from "../worker/testbed.ts";
import { openConnection } from "./holders.ts";
import { HOUR, openReconciled, somePayments, sweepRows, type Reconciled } from "./reconciled.ts";

const EVENTS = 250;
const PAGES = 3;
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
    expect(await sweepRows(reconciled)).toMatchObject([COMPLETE]);
    expect(await inbox.books()).toMatchObject({ inbox: EVENTS, entries: EVENTS, messages: EVENTS });
    // The page that was under way, and no other, is read again.
    expect(api.lists.requests).toHaveLength(PAGES + 1);
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
  const policy = {
    reach: { intervalMinutes: 60, days: 30, since: null },
    connectedAccounts: [],
    timeouts: { lockTimeoutMs: 3_000, statementTimeoutMs: 5_000 },
    leaseSeconds: 60,
    backoffCapSeconds: 300,
  };
  const run = await claimSweep(late, policy);
  await timePasses(reconciled);
  await settle();
  const rules = [
    { name: "billing", livemode: null, accounts: "own", handlers: invoiceHandlers },
  ] as const;
  const list = eventLists({ key: "sk_test_made_up", url: new URL(api.url) });
  expect(run && (await sweepPage(late, run, list, rules, policy))).toMatchObject({
    missing: 0,
    next: null,
  });
  expect(await sweepRows(reconciled)).toMatchObject([COMPLETE]);
  expect(await inbox.books()).toMatchObject({ inbox: EVENTS, entries: EVENTS });
});

test("one account that cannot be read keeps no other from being swept", async () => {
  const reconciled = await openReconciled({
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

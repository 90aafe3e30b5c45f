/** Whom `npm run verify` asks, and what it says when it cannot find out. */
import { expect, test } from "vitest";
import { runCliWith } from "./cli.ts";
import { aPayment, HOUR, openReconciled } from "./reconciled.ts";
import { booked, found, verify, verifyWith } from "./verifying.ts";

test("a list that stands still is the end, and says so", async () => {
  const invoice = aPayment().data?.object;
  const body = { object: "list", data: [invoice], has_more: true };
  const reconciled = await openReconciled({
    api: { listFault: ({ path }) => (path === "/v1/invoices" ? { status: 200, body } : null) },
  });
  const ran = await verify(reconciled);
  expect(ran).toMatchObject({ status: 2, text: expect.stringContaining("ListStandsStill") });
});

test("what is a connected account's is left out, and never booked as ours", async () => {
  const reconciled = await openReconciled();
  const { inbox, api, happened } = reconciled;
  await booked(reconciled);
  const theirs = await booked(reconciled);
  api.lists.removeInvoice(theirs);
  happened(HOUR, aPayment("invoice.paid", { id: theirs }, { account: "acct_1" }));
  happened(HOUR, aPayment("invoice.paid", {}, { account: "acct_1" }));
  const before = await inbox.books();
  const env = { STRIPE_CONNECTED_ACCOUNTS: "acct_1" };
  const ran = await verifyWith(reconciled, env, "--since", "7d", "--repair");
  expect(ran).toMatchObject({ status: 0 });
  expect(await inbox.books()).toEqual(before);
});

test("a key of the other mode is refused before anything is put on record", async () => {
  const reconciled = await openReconciled();
  const { inbox, happened } = reconciled;
  happened(HOUR, aPayment());
  const ran = await verifyWith(
    reconciled,
    { STRIPE_LIVEMODE: "true" },
    "--since",
    "2020-01-01",
    "--repair",
  );
  expect(ran).toMatchObject({ status: 2, text: expect.stringContaining("STRIPE_LIVEMODE") });
  expect(await inbox.books()).toMatchObject({ inbox: 0, entries: 0, discrepancies: 0 });
});

test("a key of another account, or mode, puts nothing on record", async () => {
  const reconciled = await openReconciled();
  const { inbox } = reconciled;
  await inbox.deliver(aPayment());
  await inbox.rows("update invoices set updated_at = updated_at - interval '1 hour'");
  const ran = await verify(reconciled);
  expect(ran).toMatchObject({ status: 2, text: expect.stringContaining("another account") });
  expect(await found(reconciled)).toEqual([]);
});

test("Stripe's limits are waited for, and what it refuses is a clear end", async () => {
  const reconciled = await openReconciled({
    api: { listFault: ({ n }) => (n === 1 ? { status: 429, retryAfterSeconds: 1 } : null) },
  });
  await booked(reconciled);
  expect(await verify(reconciled)).toMatchObject({ status: 0 });
  const refused = await openReconciled({ api: { listFault: () => ({ status: 401 }) } });
  expect(await verify(refused)).toMatchObject({
    status: 2,
    text: expect.stringContaining("Stripe:401"),
  });
});

test("whatever is missing to begin with is said, with the help", async () => {
  const { inbox, api } = await openReconciled();
  const env = { DATABASE_URL: inbox.databaseUrl, STRIPE_API_KEY: "sk_x", STRIPE_API_URL: api.url };
  const refused = async (over: Record<string, string>, ...flags: string[]) => {
    const ran = await runCliWith({ ...env, ...over }, "verify", ...flags);
    expect(ran.status).toBe(2);
    expect(ran.text).toContain("npm run verify -- --since");
    return ran.text;
  };
  expect(await refused({})).toContain("--since");
  expect(await refused({}, "--since", "soon")).toContain("--since");
  expect(await refused({}, "--since", "0d")).toContain("--since");
  expect(await refused({}, "--since", "2999-01-01")).toContain("future");
  expect(await refused({ DATABASE_URL: "" }, "--since", "7d")).toContain("DATABASE_URL");
  expect(await refused({ STRIPE_API_KEY: "" }, "--since", "7d")).toContain("STRIPE_API_KEY");
});

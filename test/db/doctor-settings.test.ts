/** The doctor: a deployment in which nothing is wrong, and each setting that can be. */
import { expect, test } from "vitest";
import { aDeployment, type Complaints, fails, skips, warns } from "./diagnosing.ts";

test("of a deployment in which nothing is wrong, every finding is ok, and none asks for anything", async () => {
  const { examine } = await aDeployment();
  const { ok, findings } = await examine();
  expect(ok).toBe(true);
  expect(findings.map(({ check }) => check)).toEqual([
    "settings",
    "road to the database",
    "secret of billing",
    "secret of connect",
    "livemode of billing",
    "livemode of connect",
    "api key",
    "queue",
    "processing",
    "alerts",
    "database",
    "migrations",
    "privileges",
    "encoding",
    "clocks",
    "transactions",
    "transaction-local settings",
    "pipelining",
    "query caching",
    "cron: tick",
    "cron: retention",
    "sweep",
    "Stripe's URL of billing",
    "Stripe's status of billing",
    "Stripe's livemode of billing",
    "Stripe's api version of billing",
    "Stripe's event types of billing",
  ]);
  for (const finding of findings) expect(finding).toMatchObject({ state: "ok", todo: null });
});

test("a receiver that was just deployed lacks nothing but what has had no time to come", async () => {
  const { inbox, complaints } = await aDeployment();
  await inbox.rows("truncate heartbeats, sweep_runs");
  expect(await complaints()).toEqual({
    "cron: tick": fails("no tick was ever seen", "crons in wrangler.toml"),
    "cron: retention": skips("it runs at 03:17 UTC"),
    sweep: warns("none has begun yet", "look again"),
  });
});

/** What hangs on settings, while one of them is unusable. */
const unread = (setting: string): Complaints => {
  const skipped = skips(`${setting} is unusable: see settings`);
  return {
    "livemode of billing": skipped,
    "livemode of connect": skipped,
    "api key": skipped,
    processing: skipped,
  };
};

test.each(["MAX_ATTEMPTS", "RETENTION_DAYS", "PROCESSING", "STRIPE_LIVEMODE", "SWEEP_SINCE"])(
  "%s that is unusable is named once, and what it hides is said to be hidden",
  async (name) => {
    const { complaints } = await aDeployment({ env: { [name]: "many" } });
    expect(await complaints()).toEqual({
      settings: fails(`${name} must be`, `Put ${name} right`),
      ...unread(name),
      sweep: skips(`${name} is unusable`),
      "Stripe's endpoints": skips(`${name} is unusable`),
    });
  },
);

test.each([
  ["HYPERDRIVE that is not bound", { HYPERDRIVE: undefined }, "HYPERDRIVE is not bound"],
  ["HYPERDRIVE that is no such binding", { HYPERDRIVE: "x" }, "HYPERDRIVE is not bound"],
])("%s is named once, and the database is not blamed", async (_, env, found) => {
  const { complaints } = await aDeployment({ env });
  expect(await complaints()).toEqual({
    settings: fails(found, "Put HYPERDRIVE right"),
    ...unread("HYPERDRIVE"),
    "road to the database": skips("HYPERDRIVE is unusable"),
    database: skips("HYPERDRIVE is unusable"),
  });
});

test("PIPELINE that is unusable is named once, and the database is not blamed", async () => {
  const { complaints } = await aDeployment({ env: { PIPELINE: "perhaps" } });
  expect(await complaints()).toEqual({
    settings: fails("PIPELINE must be on or off", "Put PIPELINE right"),
    ...unread("PIPELINE"),
    "road to the database": skips("PIPELINE is unusable"),
    database: skips("PIPELINE is unusable"),
    "Stripe's endpoints": skips("PIPELINE is unusable"),
  });
});

test("STRIPE_API_URL that is no URL is named once", async () => {
  const { complaints } = await aDeployment({ env: { STRIPE_API_URL: "stripe" } });
  expect(await complaints()).toEqual({
    settings: fails("STRIPE_API_URL must be", "Put STRIPE_API_URL right"),
    ...unread("STRIPE_API_URL"),
    sweep: skips("STRIPE_API_URL is unusable"),
    "Stripe's endpoints": skips("STRIPE_API_URL"),
  });
});

test("OUTBOX_QUEUE that is no queue is named once", async () => {
  const { complaints } = await aDeployment({ env: { OUTBOX_QUEUE: "stripe-inbox-outbox" } });
  expect(await complaints()).toEqual({
    settings: fails("OUTBOX_QUEUE must be a queue", "Put OUTBOX_QUEUE right"),
    ...unread("OUTBOX_QUEUE"),
    queue: skips("OUTBOX_QUEUE is unusable"),
    alerts: skips("OUTBOX_QUEUE is unusable"),
    sweep: skips("OUTBOX_QUEUE is unusable"),
  });
});

const BILLING = "STRIPE_WEBHOOK_SECRET";
const CONNECT = "STRIPE_CONNECT_WEBHOOK_SECRET";
const NO_SECRET = "is not set: every delivery is answered with 503";
const WRONG_SECRET = "holds what is no signing secret of Stripe's";

test.each([
  ["missing", { [BILLING]: undefined }, "billing", fails(`${BILLING} ${NO_SECRET}`, BILLING)],
  ["empty", { [BILLING]: " , " }, "billing", fails(`${BILLING} ${NO_SECRET}`, BILLING)],
  [
    "an API key",
    { [BILLING]: "sk_test_pasted_by_mistake" },
    "billing",
    fails(`${BILLING} ${WRONG_SECRET}`, BILLING),
  ],
  [
    "good and cut off, side by side,",
    { [BILLING]: "whsec_made_up_for_billing_here whsec_cut" },
    "billing",
    fails(`${BILLING} ${WRONG_SECRET}`, BILLING),
  ],
  [
    "missing where nothing is handled",
    { [CONNECT]: undefined },
    "connect",
    warns(`${CONNECT} ${NO_SECRET}`, "take the endpoint out"),
  ],
  [
    "malformed where nothing is handled",
    { [CONNECT]: "we_1234" },
    "connect",
    fails(`${CONNECT} ${WRONG_SECRET}`, CONNECT),
  ],
])("a secret that is %s is named with its binding", async (_, env, endpoint, said) => {
  const { complaints } = await aDeployment({ env });
  expect(await complaints()).toEqual({ [`secret of ${endpoint}`]: said });
});

test("two secrets, while one is being rolled, are nothing wrong", async () => {
  const rolled = "whsec_made_up_for_billing_here,whsec_that_is_to_be_the_next_one";
  const { complaints } = await aDeployment({ env: { [BILLING]: rolled } });
  expect(await complaints()).toEqual({});
});

test("with STRIPE_LIVEMODE unset, each endpoint is said to take both modes", async () => {
  const { complaints } = await aDeployment({ env: { STRIPE_LIVEMODE: undefined } });
  const said = warns("live mode and of test mode alike", "Set STRIPE_LIVEMODE");
  expect(await complaints()).toEqual({ "livemode of billing": said, "livemode of connect": said });
});

/** The doctor: the API key, the queue, the brake, and whom alerts are told. */
import type { Endpoints } from "../../src/endpoints.ts";
import { expect, test } from "vitest";
import { aDeployment, fails, skips, warns } from "./diagnosing.ts";

const PUT_KEY = "npx wrangler secret put STRIPE_API_KEY";

test("without STRIPE_API_KEY it says what does not happen, and whom it could not ask", async () => {
  const { complaints } = await aDeployment({ env: { STRIPE_API_KEY: undefined } });
  expect(await complaints()).toEqual({
    "api key": warns("STRIPE_API_KEY is not set", PUT_KEY),
    sweep: skips("STRIPE_API_KEY is not set"),
    "Stripe's endpoints": skips("there is no STRIPE_API_KEY"),
  });
});

test.each([
  ["publishable", "pk_test_made_up_for_this_test"],
  ["a signing secret", "whsec_made_up_for_billing_here"],
  ["cut off", "sk_test_"],
])("STRIPE_API_KEY that is %s is named as no key", async (_, key) => {
  const { complaints } = await aDeployment({ env: { STRIPE_API_KEY: key } });
  expect(await complaints()).toEqual({
    "api key": fails("STRIPE_API_KEY is no secret or restricted key", PUT_KEY),
  });
});

test("a key of live mode where STRIPE_LIVEMODE says false is named", async () => {
  const { complaints } = await aDeployment({ env: { STRIPE_API_KEY: "sk_live_made_up_here" } });
  expect(await complaints()).toEqual({
    "api key": fails("STRIPE_API_KEY is of live mode", `${PUT_KEY}, with a key of test mode`),
  });
});

test("a key of test mode where STRIPE_LIVEMODE says true is named, and so is Stripe's endpoint there", async () => {
  const { complaints } = await aDeployment({ env: { STRIPE_LIVEMODE: "true" } });
  expect(await complaints()).toEqual({
    "api key": fails("STRIPE_API_KEY is of test mode", `${PUT_KEY}, with a key of live mode`),
    "Stripe's livemode of billing": fails("test mode", "STRIPE_LIVEMODE says otherwise"),
  });
});

test("a restricted key is as good", async () => {
  const { complaints } = await aDeployment({ env: { STRIPE_API_KEY: "rk_test_made_up_here" } });
  expect(await complaints()).toEqual({});
});

test.each([
  [
    "a queue that is not bound",
    { OUTBOX_QUEUE: undefined },
    { queue: fails("OUTBOX_QUEUE is not bound", "npx wrangler queues create") },
  ],
  [
    "processing that is paused",
    { PROCESSING: "paused" },
    { processing: warns("paused: every event is stored", 'PROCESSING = "on"') },
  ],
  [
    "nobody to tell of alerts",
    { ALERT_URL: undefined },
    { alerts: warns("ALERT_URL is not set", "npx wrangler secret put ALERT_URL") },
  ],
  [
    "ALERT_URL that is no URL",
    { ALERT_URL: "ops@example.com" },
    { alerts: fails("ALERT_URL must be", "Put ALERT_URL right") },
  ],
  [
    "a threshold of alerts that is no number",
    { ALERT_BACKLOG_MINUTES: "soon" },
    { alerts: fails("ALERT_BACKLOG_MINUTES must be", "Put ALERT_BACKLOG_MINUTES right") },
  ],
  [
    "sweeps that are switched off",
    { SWEEP_INTERVAL_MINUTES: "0" },
    { sweep: skips("SWEEP_INTERVAL_MINUTES is 0") },
  ],
])("%s is named, and nothing else", async (_, env, said) => {
  const { complaints } = await aDeployment({ env });
  expect(await complaints()).toEqual(said);
});

const THIN_ALONE: Endpoints = {
  billing: {
    secrets: "STRIPE_WEBHOOK_SECRET",
    accounts: "own",
    handlers: {},
    thinHandlers: { "v2.core.account.closed": { fetch: "event", handle: () => [] } },
  },
};

test("without a key, nobody can be asked for what a thin notification names", async () => {
  const { complaints } = await aDeployment({
    env: { STRIPE_API_KEY: undefined },
    endpoints: THIN_ALONE,
  });
  expect(await complaints()).toMatchObject({
    "api key": fails("no thin notification is processed", PUT_KEY),
  });
});

test("which thin events should come is said, and that nobody looked", async () => {
  const { complaints } = await aDeployment({
    endpoints: THIN_ALONE,
  });
  expect(await complaints()).toEqual({
    "Stripe's thin events of billing": skips("sends v2.core.account.closed"),
  });
});

/** The doctor: what Stripe itself says of the endpoints to which it delivers. */
import { expect, test } from "vitest";
import { invoiceHandlers } from "../../src/billing/handlers.ts";
import type { JsonObject } from "../local/invoice-shapes.ts";
import type { ApiFault } from "../local/stripe-api.ts";
import { billingUrl, webhookEndpoint } from "../local/stripe-endpoints.ts";
import { aDeployment, type Complaints, fails, HERE, skips, warns } from "./diagnosing.ts";
import { BOTH } from "./reconciled.ts";

/** What is said when Stripe has these endpoints, and no other. */
async function withEndpoints(...endpoints: readonly JsonObject[]): Promise<Complaints> {
  const { api, complaints } = await aDeployment();
  api.lists.endpoints = endpoints;
  return complaints();
}

const ours = (fields: JsonObject = {}): JsonObject => webhookEndpoint(billingUrl(HERE), fields);
const elsewhere = (url: string): JsonObject => webhookEndpoint(url);
const TYPES = Object.keys(invoiceHandlers);

test.each([
  ["no endpoint at all", []],
  ["one for somebody else", [elsewhere("https://shop.test/stripe")]],
  ["one for another endpoint of ours", [elsewhere(`${HERE}/webhooks/stripe/connect`)]],
  ["one whose path goes on", [elsewhere(`${billingUrl(HERE)}/more`)]],
])("with %s, nothing leads here: the URL to add is named", async (_, endpoints) => {
  const found = `(${endpoints.length}), none leads to /webhooks/stripe/billing`;
  expect(await withEndpoints(...endpoints)).toEqual({
    "Stripe's URL of billing": fails(found, `Add ${billingUrl(HERE)} in Stripe`),
  });
});

test("an endpoint at another host is named, with both hosts", async () => {
  const url = billingUrl("https://old.test");
  expect(await withEndpoints(elsewhere(url))).toEqual({
    "Stripe's URL of billing": warns(`${url}, and this is inbox.test`, "correct the URL"),
  });
});

test.each([
  ["without its name", `${HERE}/webhooks/stripe`],
  ["with a slash behind it", `${billingUrl(HERE)}/`],
])("the default endpoint is known %s", async (_, url) => {
  expect(await withEndpoints(elsewhere(url))).toEqual({});
});

test("of several, the one that leads here counts", async () => {
  const stale = webhookEndpoint(billingUrl("https://old.test"), { status: "disabled" });
  expect(await withEndpoints(stale, ours(), elsewhere("https://shop.test/"))).toEqual({});
});

test("while the API version is changed, the twin that is disabled is nothing wrong", async () => {
  const old = { status: "disabled", api_version: "2020-08-27" };
  expect(await withEndpoints(ours(), ours(old))).toEqual({});
});

test("where both twins deliver, both are looked at", async () => {
  const { api, examine } = await aDeployment();
  api.lists.endpoints = [ours(), ours({ api_version: "2020-08-27" })];
  const { findings } = await examine();
  const versions = findings.filter(({ check }) => check === "Stripe's api version of billing");
  expect(versions.map(({ state }) => state).toSorted()).toEqual(["ok", "warn"]);
});

test.each([
  [
    "is disabled",
    { status: "disabled" },
    { "Stripe's status of billing": fails("disabled", "Enable it in Stripe") },
  ],
  [
    "is of the other mode",
    { livemode: true },
    { "Stripe's livemode of billing": fails("live mode", "STRIPE_LIVEMODE says otherwise") },
  ],
  [
    "speaks the account's own API version",
    { api_version: null },
    { "Stripe's api version of billing": warns("the account's own", "Make the endpoint anew") },
  ],
  [
    "speaks an older API version",
    { api_version: "2020-08-27" },
    { "Stripe's api version of billing": warns("2020-08-27, and handlers", "make the endpoint") },
  ],
  [
    "lacks two of the event types that are handled",
    { enabled_events: TYPES.filter((type) => !/invoice\.(paid|voided)/.test(type)) },
    {
      "Stripe's event types of billing": fails(
        "not delivered: invoice.voided, invoice.paid",
        "Add them to the endpoint in Stripe",
      ),
    },
  ],
])("an endpoint that %s is named for it, and for nothing else", async (_, fields, said) => {
  expect(await withEndpoints(ours(fields))).toEqual(said);
});

test("an endpoint that delivers everything lacks nothing", async () => {
  expect(await withEndpoints(ours({ enabled_events: ["*"] }))).toEqual({});
});

const REFUSED = { error: { type: "invalid_request_error", message: "Text of Stripe's own." } };

test.each([
  ["refuses the key", { status: 401 }, fails("Stripe:401", "secret put STRIPE_API_KEY")],
  ["lets the key not read endpoints", { status: 403 }, skips("STRIPE_API_KEY may not read")],
  ["is down", { status: 500 }, fails("Stripe:500", "Look again later")],
  ["asks for patience", { status: 429 }, fails("Stripe:429", "Look again later")],
  ["hangs up", "lose the answer", fails("StripeConnectionError", "Look again later")],
  [
    "answers what is no list",
    { status: 200, body: { data: [{}] } },
    fails("UnreadablePage", "Look again later"),
  ],
  [
    "answers with what it knows of us",
    { status: 400, body: REFUSED },
    fails("Stripe:400", "Look again later"),
  ],
] as const)(
  "when Stripe %s, that is said, and nothing of its endpoints",
  async (_, fault, said) => {
    const listFault = ({ path }: { readonly path: string }): ApiFault | null =>
      path === "/v1/webhook_endpoints" ? fault : null;
    const { examine, complaints } = await aDeployment({ api: { listFault } });
    expect(await complaints()).toEqual({ "Stripe's endpoints": said });
    expect(JSON.stringify(await examine())).not.toContain("Text of Stripe's own");
  },
);

test("of connected accounts, another endpoint is looked for", async () => {
  const { api, complaints } = await aDeployment({ endpoints: BOTH });
  expect(await complaints()).toEqual({
    "Stripe's URL of connect": fails("none leads to", `Add ${HERE}/webhooks/stripe/connect`),
  });
  api.lists.endpoints = [ours(), elsewhere(`${HERE}/webhooks/stripe/connect`)];
  expect(await complaints()).toEqual({});
});

test("it asks Stripe once, for all there are", async () => {
  const { api, complaints } = await aDeployment();
  await complaints();
  const asked = api.lists.requests.map(({ path, parameters }) => `${path}?${String(parameters)}`);
  expect(asked).toEqual(["/v1/webhook_endpoints?limit=100"]);
});

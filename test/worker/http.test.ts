/** Which requests lead to which door, on an app made from a table and on the Worker as deployed. */
import { beforeAll, describe, expect, test } from "vitest";
import worker from "../../src/index.ts";
import { signatureHeader } from "../local/sign.ts";
import {
  anInvoiceEvent,
  CONNECT_SECRET,
  logLines,
  openTestbed,
  roadTo,
  SECRET,
  type Testbed,
} from "./testbed.ts";

const NOWHERE = roadTo("postgres://inbox:unheard@127.0.0.1:1/inbox");

describe.each([
  { door: "an app made from the shipped table", options: {} },
  { door: "the Worker as it is deployed", options: { app: worker } },
])("$door", ({ options }) => {
  let inbox: Testbed;
  let unconnected: Testbed;
  beforeAll(async () => {
    inbox = await openTestbed(options);
    unconnected = await openTestbed({ ...options, env: NOWHERE });
  });

  test.each([
    { path: "/webhooks/stripe", endpoint: "billing" },
    { path: "/webhooks/stripe/", endpoint: "billing" },
    { path: "/webhooks/stripe?endpoint=connect", endpoint: "billing" },
    { path: "/webhooks/stripe/?x=1", endpoint: "billing" },
    { path: "/webhooks/stripe/billing", endpoint: "billing" },
    { path: "/webhooks/stripe/billing/", endpoint: "billing" },
    { path: "/webhooks/stripe/billing?x=%2Fconnect&y=/z", endpoint: "billing" },
    { path: "/webhooks/stripe/billing/?", endpoint: "billing" },
    { path: "/webhooks/stripe/connect", endpoint: "connect" },
    { path: "/webhooks/stripe/connect/?x=1", endpoint: "connect" },
  ])("POST $path is for the endpoint $endpoint", async ({ path, endpoint }) => {
    const event = anInvoiceEvent();
    const body = JSON.stringify(event);
    const secret = endpoint === "connect" ? CONNECT_SECRET : SECRET;
    const headers = { "stripe-signature": await signatureHeader(body, secret) };
    expect(await inbox.post(path, { body, headers })).toMatchObject({ status: 200 });
    const row = "select endpoint from webhook_inbox where event_id = $1";
    expect(await inbox.rows(row, [event.id])).toEqual([{ endpoint }]);
  });

  test.each([
    "/webhooks/stripe/unknown",
    "/webhooks/stripe/Billing",
    "/webhooks/stripe/billing%20",
    "/webhooks/stripe/billing/more",
    "/webhooks/stripe/constructor",
    "/webhooks/stripe/__proto__",
    "/webhooks/stripe/toString",
    "/webhooks/stripe/hasOwnProperty",
    "/webhooks/stripe/%E0%A4%A",
    "/webhooks/stripe/%00",
    "/webhooks",
    "/webhooks/other/billing",
    "/webhook/stripe/billing",
    "/",
  ])("POST %s: 404, even with a good signature", async (path) => {
    const before = await inbox.books();
    const body = JSON.stringify(anInvoiceEvent());
    const headers = { "stripe-signature": await signatureHeader(body, SECRET) };
    const answer = await inbox.post(path, { body, headers });
    expect(answer).toMatchObject({ status: 404, outcome: undefined, event: undefined });
    expect(answer.headers.get("content-type")).toMatch(/^application\/json/);
    expect(await inbox.books()).toEqual(before);
  });

  test.each(["GET", "HEAD", "PUT", "PATCH", "DELETE", "OPTIONS"])(
    "%s on an endpoint: 405, and POST is named as what is allowed",
    async (method) => {
      for (const path of ["/webhooks/stripe", "/webhooks/stripe/connect/", "/webhooks/stripe?x"]) {
        const answer = await unconnected.post(path, { method });
        expect(answer, path).toMatchObject({ status: 405 });
        expect(answer.headers.get("allow"), path).toBe("POST");
      }
      expect(await unconnected.post("/webhooks/stripe/unknown", { method })).toMatchObject({
        status: 404,
      });
    },
  );

  test("GET /healthz says ok without database, secret or valid settings, in a line of the log each", async () => {
    const env = { ...NOWHERE, STRIPE_WEBHOOK_SECRET: "", STRIPE_LIVEMODE: "perhaps" };
    const unusable = await openTestbed({ ...options, env });
    const lines = await logLines(async () => {
      for (const path of ["/healthz", "/healthz/", "/healthz?x=1"]) {
        expect(await unusable.post(path, { method: "GET" })).toMatchObject({
          status: 200,
          text: "ok",
        });
      }
    });
    expect(lines.map(({ message, status }) => ({ message, status }))).toEqual(
      Array.from({ length: 3 }, () => ({ message: "request", status: 200 })),
    );
  });

  test.each(["/ops", "/ops/", "/ops/api/events", "/ops/api/events/evt_1/requeue", "/metrics"])(
    "%s is closed while no operator credential is configured",
    async (path) => {
      const unknown = await inbox.post("/nothing-here", { method: "GET" });
      for (const method of ["GET", "POST", "HEAD"]) {
        const headers = { authorization: "Bearer ", cookie: "ops=1" };
        const answer = await inbox.post(path, { method, headers });
        expect(answer).toMatchObject({ status: 404 });
        if (method === "GET") expect(answer.text).toBe(unknown.text);
      }
    },
  );
});

test("one line is logged for each delivery, with what is known of it", async () => {
  const inbox = await openTestbed();
  const event = anInvoiceEvent();
  const lines = await logLines(async () => {
    await inbox.deliver(event);
    await inbox.deliver(event, { secret: "whsec_other" });
    await inbox.post("/webhooks/stripe/unknown");
    await inbox.post("/webhooks/stripe", { method: "GET" });
  });
  const common = { message: "delivery", ms: expect.any(Number) };
  expect(lines).toEqual([
    {
      ...common,
      level: "info",
      endpoint: "billing",
      event: event.id,
      type: event.type,
      outcome: "processed",
      status: 200,
    },
    {
      ...common,
      level: "warn",
      endpoint: "billing",
      outcome: "invalid",
      invalid: "signature",
      detail: "no secret matches",
      status: 400,
    },
    { ...common, level: "warn", status: 404 },
    { ...common, level: "warn", endpoint: "billing", status: 405 },
  ]);
});

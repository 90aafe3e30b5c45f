/** Who gets in to the operator's side, and who does not. */
import { beforeAll, describe, expect, test } from "vitest";
import { logIn } from "./logged-in.ts";
import { anOperator, BEARER, type Operator, OPS_TOKEN, WRITES } from "./operator.ts";
import { anInvoiceEvent, logLines } from "./testbed.ts";

const READS = [
  "/ops/api/figures",
  "/ops/api/doctor",
  "/ops/api/events",
  "/ops/api/events/billing/evt_1",
  "/ops/api/events/requeueable?reason=x",
  "/ops/api/messages",
  "/ops/api/messages/requeueable?reason=x",
  "/ops/api/discrepancies",
  "/ops/api/discrepancies/resolvable?kind=paid_after_void",
  "/ops/api/actions",
] as const;
const PAGES = ["/ops", "/ops/", "/ops/login", "/ops/logout", "/ops/anything"] as const;

describe("where no token is set", () => {
  let operator: Operator;
  beforeAll(async () => {
    operator = await anOperator({ env: { OPS_TOKEN: undefined } });
  });

  test.each([...READS, ...PAGES, "/metrics", "/metrics/"])("GET %s is 404", async (path) => {
    const nothing = await operator.ask("/nowhere");
    const { status, text } = await operator.get(path);
    expect({ status, text }).toEqual({ status: 404, text: nothing.text });
  });

  test.each([...WRITES.map(({ path }) => path), "/ops/login", "/ops/logout"])(
    "POST %s is 404",
    async (path) => {
      expect(await operator.send(path, {})).toMatchObject({ status: 404 });
    },
  );

  test("an empty token is none", async () => {
    const { ask } = await anOperator({ env: { OPS_TOKEN: "" } });
    expect(await ask("/ops/login")).toMatchObject({ status: 404 });
    const empty = { authorization: "Bearer " };
    expect(await ask("/metrics", { headers: empty })).toMatchObject({ status: 404 });
  });
});

describe("without a credential", () => {
  let operator: Operator;
  beforeAll(async () => {
    operator = await anOperator();
  });

  test.each([...READS, "/ops/api/nothing", "/metrics"])("GET %s is 401", async (path) => {
    const { status, headers, text } = await operator.ask(path);
    expect(status).toBe(401);
    expect(headers.get("www-authenticate")).toMatch(/^Bearer/);
    expect(headers.get("cache-control")).toBe("no-store");
    expect(text).not.toContain(OPS_TOKEN);
  });

  test.each(WRITES)("POST $path is 401, and does nothing", async ({ path, body }) => {
    const { inbox, ask } = operator;
    await inbox.deliver(anInvoiceEvent("invoice.paid", { amountPaid: -1 }));
    const headers = { "content-type": "application/json", "x-operator": "Mallory" };
    const said = await ask(path, { method: "POST", headers, body: JSON.stringify(body) });
    expect(said.status).toBe(401);
    expect(await inbox.rows("select 1 from operator_actions")).toEqual([]);
  });

  test.each([
    "Bearer",
    "Bearer ",
    `Bearer ${OPS_TOKEN}x`,
    `Bearer ${OPS_TOKEN.slice(1)}`,
    `Bearer ${OPS_TOKEN.toLowerCase()}`,
    `Basic ${btoa(`ops:${OPS_TOKEN}`)}`,
    OPS_TOKEN,
  ])("authorization %j is 401", async (authorization) => {
    const { ask } = operator;
    for (const path of ["/ops/api/figures", "/metrics"]) {
      expect((await ask(path, { headers: { authorization } })).status).toBe(401);
    }
  });

  test.each(["HEAD", "OPTIONS", "PUT", "PATCH", "DELETE"])(
    "%s opens nothing that GET does not",
    async (method) => {
      for (const path of [...READS, "/metrics", "//ops/api/figures", "/OPS/api/figures"]) {
        const said = await operator.ask(path, { method });
        expect([401, 404]).toContain(said.status);
        expect(said.text).not.toContain("waiting");
      }
    },
  );

  test("/ops leads to the login form, and shows nothing", async () => {
    const { status, headers } = await operator.ask("/ops");
    expect(status).toBe(303);
    expect(headers.get("location")).toBe("/ops/login");
  });
});

describe("the token", () => {
  test.each([
    { token: "short", why: "too short" },
    { token: "hunter2".repeat(9), why: "repeated" },
    { token: "a".repeat(64), why: "one character" },
    { token: "0123456789abcdef".repeat(3), why: "24 bytes in hex" },
    { token: OPS_TOKEN.slice(0, 40), why: "30 bytes in base64" },
    { token: "12345678901234567890".repeat(3), why: "60 decimal digits" },
    { token: "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567ABCDEFGHIJK", why: "26 bytes in base32" },
    { token: OPS_TOKEN.replace("q", "\u00fc"), why: "what no header can hold" },
    { token: `${OPS_TOKEN} short`, why: "a second one is too short" },
  ])("is refused by name when it is $why", async ({ token }) => {
    const { ask, inbox } = await anOperator({ env: { OPS_TOKEN: token } });
    const { status, body, text } = await ask("/ops/api/figures", {
      headers: { authorization: `Bearer ${token}` },
    });
    expect(status).toBe(503);
    expect(body.error).toMatch(/^OPS_TOKEN must be at least 32 random bytes/);
    expect(text).not.toContain(token);
    // What Stripe delivers is none of its business.
    expect(await inbox.deliver(anInvoiceEvent())).toMatchObject({ outcome: "processed" });
  });

  test.each([
    { token: "8f14e45fceea167a5a36dedd4bea2543c9f0f895fb98ab9159f51fd0297e236d", form: "hex" },
    { token: OPS_TOKEN, form: "base64" },
    { token: OPS_TOKEN.replace(/=$/, ""), form: "base64url" },
  ])("may be written in $form", async ({ token }) => {
    const { ask } = await anOperator({ env: { OPS_TOKEN: token } });
    const headers = { authorization: `bearer ${token}` };
    expect((await ask("/ops/api/figures", { headers })).status).toBe(200);
  });

  test("may be two, while one is being replaced", async () => {
    const next = OPS_TOKEN.split("").toReversed().join("").replace("=", "");
    const { ask } = await anOperator({ env: { OPS_TOKEN: `${next},\n${OPS_TOKEN}` } });
    for (const token of [next, OPS_TOKEN]) {
      const headers = { authorization: `Bearer ${token}` };
      expect((await ask("/metrics", { headers })).status).toBe(200);
    }
  });
});
test("an action needs a name for the record", async () => {
  const { send } = await anOperator();
  const said = await send("/ops/api/events/requeue", WRITES[0].body, { "x-operator": "" });
  expect(said.status).toBe(400);
  expect(said.body.error).toContain("X-Operator");
});

test("no answer can be framed, sniffed or kept, nor runs a script", async () => {
  const { ask } = await anOperator();
  const { headers } = await ask("/ops/login");
  expect(headers.get("content-security-policy")).toBe(
    "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
  );
  expect(headers.get("x-content-type-options")).toBe("nosniff");
  expect(headers.get("referrer-policy")).toBe("same-origin");
  expect(headers.get("cache-control")).toBe("no-store");
});

test("each request is one line of the log: its route, status and time, and nothing of who asks for what", async () => {
  const operator = await anOperator();
  const lines = await logLines(async () => {
    await operator.get("/ops/api/events?customer_id=cus_private");
    await logIn(operator);
    await operator.ask("/nowhere/at@all");
    await operator.ask("/healthz");
    await operator.ask("/ops/api/figures");
    await operator.ask("/ops/api/jane@example.com");
    await operator.get("/ops/api/events/billing/jane@example.com");
  });
  const ms: unknown = expect.any(Number);
  expect(lines).toEqual([
    { level: "info", message: "request", method: "GET", route: "/ops/api/events", status: 200, ms },
    {
      level: "info",
      message: "request",
      method: "POST",
      route: "/ops/login",
      login: "granted",
      status: 303,
      ms,
    },
    { level: "info", message: "request", method: "GET", status: 404, ms },
    { level: "info", message: "request", method: "GET", route: "/healthz", status: 200, ms },
    {
      level: "warn",
      message: "request",
      method: "GET",
      route: "/ops/api/figures",
      status: 401,
      ms,
    },
    { level: "warn", message: "request", method: "GET", status: 401, ms },
    {
      level: "info",
      message: "request",
      method: "GET",
      route: "/ops/api/events/:endpoint/:id{.+}",
      status: 404,
      ms,
    },
  ]);
  expect(JSON.stringify(lines)).not.toMatch(/Ada|cus_private|at@all|jane/);
  expect(JSON.stringify(lines)).not.toContain(BEARER.authorization.slice(7));
});

/** A browser's session: how it begins, what it may, and how it ends. */
import { beforeAll, describe, expect, test, vi } from "vitest";
import { COOKIE, cookieOf, HERE, logIn } from "./logged-in.ts";
import { anOperator, type Operator, OPS_TOKEN, WRITES } from "./operator.ts";
import { anInvoiceEvent } from "./testbed.ts";

describe("a session", () => {
  let operator: Operator;
  let cookie: string;
  beforeAll(async () => {
    operator = await anOperator();
    cookie = cookieOf(await logIn(operator));
  });

  test("begins with the token and a name, in a cookie that only the browser and we see, and that ends", async () => {
    const said = await logIn(operator);
    expect(said.status).toBe(303);
    expect(said.headers.get("location")).toBe("/ops");
    const set = said.headers.get("set-cookie") ?? "";
    expect(set).toMatch(new RegExp(`^${COOKIE}=`));
    for (const attribute of ["HttpOnly", "Secure", "SameSite=Strict", "Path=/ops", "Max-Age=28800"])
      expect(set.split("; ")).toContain(attribute);
    expect(set).not.toContain(OPS_TOKEN);
  });

  test.each([
    { fields: { token: "wrong" } },
    { fields: { token: "" } },
    { fields: { operator: "" } },
    { fields: { operator: "x".repeat(101) } },
    { fields: { operator: "two\nlines" } },
  ])("does not begin with $fields", async ({ fields }) => {
    const said = await logIn(operator, fields);
    expect(said.status).toBe(401);
    expect(said.headers.get("set-cookie")).toBe(null);
    expect(said.text).toContain("That is not the token");
  });

  test("does not begin from another site, nor from who does not say from where", async () => {
    for (const headers of [{ origin: "https://evil.test" }, { origin: "null" }, {}] as const) {
      const said = await logIn(operator, {}, headers);
      expect(said.status).toBe(403);
      expect(said.headers.get("set-cookie")).toBe(null);
    }
  });

  test("lets the browser read the pages and the API", async () => {
    for (const path of ["/ops", "/ops/api/figures"]) {
      expect((await operator.ask(path, { headers: { cookie } })).status).toBe(200);
    }
    expect((await operator.ask("/ops", { headers: { cookie } })).text).toContain("Ada");
  });

  test("is not for /metrics, which machines read", async () => {
    expect((await operator.ask("/metrics", { headers: { cookie } })).status).toBe(401);
  });

  test.each(WRITES)("acts at POST $path only from our own pages", async ({ path, body }) => {
    const post = (from: Readonly<Record<string, string>>) =>
      operator.ask(path, {
        method: "POST",
        headers: { cookie, "content-type": "application/json", ...from },
        body: JSON.stringify(body),
      });
    for (const from of [
      { origin: "https://evil.test" },
      { origin: "https://inbox.test.evil.test" },
      { origin: "http://inbox.test" },
      { origin: "null" },
      { "sec-fetch-site": "cross-site" },
      { "sec-fetch-site": "same-site" },
      { "sec-fetch-site": "none" },
      {},
    ] as const) {
      expect((await post(from)).status).toBe(403);
    }
    for (const from of [{ origin: HERE }, { "sec-fetch-site": "same-origin" }] as const) {
      // Of the discrepancy there is none.
      expect((await post(from)).status).toBe(path.includes("/1/") ? 404 : 200);
    }
  });

  test("what it does is on record under its name", async () => {
    const { inbox, ask } = operator;
    const event = anInvoiceEvent("invoice.paid", { amountPaid: -1 });
    await inbox.deliver(event);
    await ask("/ops/api/events/requeue", {
      method: "POST",
      headers: { cookie, origin: HERE, "content-type": "application/json" },
      body: JSON.stringify({ event_id: event.id, count: 1, why: "mended" }),
    });
    expect(await inbox.rows("select operator, via, why from operator_actions")).toEqual([
      { operator: "Ada", via: "session", why: "mended" },
    ]);
  });

  test("is over after eight hours, whatever the browser keeps", async () => {
    const { ask } = operator;
    const begun = Date.now();
    const headers = { cookie: cookieOf(await logIn(operator)) };
    try {
      vi.setSystemTime(begun + 8 * 3_600_000 - 30_000);
      expect((await ask("/ops/api/figures", { headers })).status).toBe(200);
      vi.setSystemTime(begun + 8 * 3_600_000 + 60_000);
      expect((await ask("/ops/api/figures", { headers })).status).toBe(401);
    } finally {
      vi.useRealTimers();
    }
  });

  test("cannot be made longer, nor another's", async () => {
    const [name = "", value = ""] = cookie.split(/=(.*)/s);
    const [content = "", signature = ""] = decodeURIComponent(value).split(/\.(?=[^.]*$)/);
    for (const forged of [
      content.replace(/^\d+/, "99999999999"),
      content.replace(/[^.]+$/, Buffer.from("Eve").toString("base64url")),
    ]) {
      expect(forged).not.toBe(content);
      const made = `${name}=${encodeURIComponent(`${forged}.${signature}`)}`;
      const said = await operator.ask("/ops/api/figures", { headers: { cookie: made } });
      expect(said.status).toBe(401);
    }
  });

  test("ends with its token", async () => {
    const next = OPS_TOKEN.split("").toReversed().join("").replace("=", "");
    const { ask } = await anOperator({ env: { OPS_TOKEN: next } });
    expect((await ask("/ops/api/figures", { headers: { cookie } })).status).toBe(401);
    const both = await anOperator({ env: { OPS_TOKEN: `${next} ${OPS_TOKEN}` } });
    expect((await both.ask("/ops/api/figures", { headers: { cookie } })).status).toBe(200);
  });

  test.each(["", "x", `${COOKIE}=`, `${COOKIE}=99999999999.QWRh`, `${COOKIE}=%E0%A4%A`])(
    "a cookie that we did not make (%j) is none",
    async (made) => {
      const said = await operator.ask("/ops/api/figures", { headers: { cookie: made } });
      expect(said.status).toBe(401);
    },
  );

  test("is ended by the operator, from our own pages alone", async () => {
    const { ask } = operator;
    const leave = (origin: string) =>
      ask("/ops/logout", { method: "POST", headers: { cookie, origin } });
    expect((await leave("https://evil.test")).status).toBe(403);
    const out = await leave(HERE);
    expect(out.status).toBe(303);
    expect(out.headers.get("set-cookie")).toMatch(new RegExp(`^${COOKIE}=;.*Max-Age=0`));
  });
});

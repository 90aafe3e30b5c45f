/** What an operator asks for that makes no sense, or cannot be had. */
import { describe, expect, test } from "vitest";
import { anOperator, BEARER } from "./operator.ts";
import { roadTo } from "./testbed.ts";

describe("what makes no sense is refused, and says why:", () => {
  const requeue = { reason: "x", count: 1, why: "y" };
  test.each([
    { body: {}, says: "count" },
    { body: { reason: "x", count: 1 }, says: "why" },
    { body: { reason: "x", count: 0, why: "y" }, says: "count" },
    { body: { reason: "x", count: -1, why: "y" }, says: "count" },
    { body: { reason: "x", count: "many", why: "y" }, says: "count" },
    { body: { ...requeue, why: " " }, says: "why" },
    { body: { ...requeue, why: "a\u0000b" }, says: "why" },
    { body: { ...requeue, ignored_reason: "x" }, says: "Say which" },
    { body: { ...requeue, event_id: "x" }, says: "Say which" },
    { body: { count: 1, why: "y" }, says: "Say which" },
    { body: { ...requeue, colour: "green" }, says: "colour" },
    { body: null, says: "JSON object" },
    { body: [], says: "JSON object" },
    { body: "x", says: "JSON object" },
  ])("$body", async ({ body, says }) => {
    const { send } = await anOperator();
    const { status, body: said } = await send("/ops/api/events/requeue", body);
    expect(status).toBe(400);
    expect(said.error).toContain(says);
  });

  test.each([
    { type: "application/x-www-form-urlencoded", text: "reason=x", is: 400 },
    { type: "text/plain", text: JSON.stringify(requeue), is: 400 },
    { type: "application/json", text: "{", is: 400 },
    { type: "application/json", text: "", is: 400 },
    { type: "application/json", text: `{"reason":"${"x".repeat(20_000)}"}`, is: 413 },
  ])("a body of $type: $is", async ({ type, text, is }) => {
    const { ask } = await anOperator();
    const headers = { ...BEARER, "content-type": type };
    const said = await ask("/ops/api/events/requeue", { method: "POST", headers, body: text });
    expect(said.status).toBe(is);
  });
});

test.each([
  { path: "/ops/api/events", method: "DELETE" },
  { path: "/ops/api/figures", method: "POST" },
  { path: "/ops/api/events/requeue", method: "GET" },
  { path: "/ops/api/nothing", method: "GET" },
])("$method $path is not there", async ({ path, method }) => {
  const { ask } = await anOperator();
  expect((await ask(path, { method, headers: BEARER })).status).toBe(404);
});

test("without its database, every answer says so, and where to look", async () => {
  const { get } = await anOperator({ env: roadTo("postgres://inbox:unheard@127.0.0.1:1/inbox") });
  for (const path of ["figures", "events", "events/billing/evt_1", "messages", "actions"]) {
    const { status, body, text } = await get(`/ops/api/${path}`);
    expect(status).toBe(503);
    expect(body.error).toMatch(/^The database is unavailable/);
    expect(body.todo).toContain("/ops/api/doctor");
    expect(text).not.toContain("unheard");
  }
  expect((await get("/metrics")).status).toBe(503);
});

/** What a failure of Stripe's API is taken for. */
import { once } from "node:events";
import { createServer } from "node:http";
import { expect, onTestFinished, test } from "vitest";
import { callStripe, createStripe } from "../../src/stripe/api.ts";
import { LOOPBACK } from "../local/ports.ts";

async function callAnsweredWith(
  status: number,
  body: string,
  headers: Record<string, string> = {},
): Promise<unknown> {
  const server = createServer((_, response) => {
    response.writeHead(status, { "content-type": "application/json", ...headers });
    response.end(body);
  });
  server.listen(0, LOOPBACK);
  await once(server, "listening");
  onTestFinished(() => void server.close());
  const address = server.address();
  if (typeof address !== "object" || address === null) throw new Error("Bug! This is TCP.");
  const stripe = createStripe({
    key: "sk_test_made_up",
    url: new URL(`http://${LOOPBACK}:${address.port}`),
  });
  return callStripe(() => stripe.customers.update("cus_1", {})).catch((error: unknown) => error);
}

const ERROR = JSON.stringify({ error: { type: "api_error", message: "no" } });

test.each([
  [400, ERROR, "refused"],
  [404, ERROR, "refused"],
  [401, ERROR, "no access"],
  [403, ERROR, "no access"],
  [429, ERROR, "not now"],
  [409, ERROR, "uncertain"],
  [500, ERROR, "uncertain"],
  // A gateway's: JSON, and no error that the SDK would know.
  [503, '{"message":"try later"}', "uncertain"],
] as const)("an answer of %i, %s, is %s", async (status, body, kind) => {
  expect(await callAnsweredWith(status, body)).toMatchObject({
    name: "CallFailed",
    kind,
    code: `Stripe:${status}`,
  });
});

test("an answer that is no JSON is uncertain; one that is as it should be is the result", async () => {
  expect(await callAnsweredWith(200, "<html>")).toMatchObject({ kind: "uncertain" });
  expect(await callAnsweredWith(200, '{"id":"cus_1"}')).toMatchObject({ id: "cus_1" });
});

test("how long to wait is read from the answer, where it says so in seconds", async () => {
  for (const [value, retryAfterSeconds] of [
    ["77", 77],
    ["Fri, 01 Jan 2027 00:00:00 GMT", null],
  ] as const) {
    const failure = await callAnsweredWith(429, ERROR, { "retry-after": value });
    expect(failure).toMatchObject({ retryAfterSeconds });
  }
});

/** The fake keeps by key what Stripe keeps, and forgets it; what was done stays counted. */
import { expect, onTestFinished, test } from "vitest";
import { type ApiFault, type ApiOptions, startStripeApi } from "./stripe-api.ts";

async function openApi(fault?: ApiOptions["fault"]) {
  const api = await startStripeApi(fault ? { fault } : {});
  onTestFinished(api.close);
  const tell = async (key: string, invoice = "in_1", customer = "cus_1"): Promise<number> => {
    const answer = await fetch(`${api.url}/v1/customers/${customer}`, {
      method: "POST",
      headers: { "idempotency-key": key },
      body: new URLSearchParams({ "metadata[last_paid_invoice]": invoice }),
    });
    await answer.text();
    return answer.status;
  };
  return { api, tell };
}

const first =
  (fault: ApiFault): NonNullable<ApiOptions["fault"]> =>
  ({ n }) =>
    n === 1 ? fault : null;

test("a repeated call is answered again and not done again", async () => {
  const { api, tell } = await openApi();
  expect([await tell("a"), await tell("a")]).toEqual([200, 200]);
  expect(await tell("a", "in_2")).toBe(400);
  expect(api.told).toEqual([{ customer: "cus_1", invoice: "in_1" }]);
});

test("one payment that is told under two keys, or under a forgotten one, is told twice", async () => {
  const { api, tell } = await openApi();
  await tell("a");
  await tell("b");
  expect(api.told).toHaveLength(2);
  expect([...api.effects.values()]).toEqual([1, 1]);
  api.forget();
  await tell("a");
  expect(api.told).toHaveLength(3);
  expect(api.effects.get("a")).toBe(2);
  const report: unknown = await (await fetch(`${api.url}/report`)).json();
  expect(report).toMatchObject({ calls: { a: 2, b: 1 }, told: api.told });
});

test("while a call is being acted on, its key is in use, and other keys are not", async () => {
  const acting = Promise.withResolvers<null>();
  const begun = Promise.withResolvers<void>();
  const { api, tell } = await openApi(({ key, n }) => {
    if (key !== "a" || n > 1) return null;
    begun.resolve();
    return acting.promise;
  });
  const one = tell("a");
  await begun.promise;
  expect([await tell("a"), await tell("b")]).toEqual([409, 200]);
  acting.resolve(null);
  expect([await one, await tell("a")]).toEqual([200, 200]);
  expect([...api.effects]).toEqual([
    ["b", 1],
    ["a", 1],
  ]);
});

test("a 500 is answered to every repetition, and nothing is done", async () => {
  const { api, tell } = await openApi(first({ status: 500 }));
  expect([await tell("a"), await tell("a"), await tell("a")]).toEqual([500, 500, 500]);
  expect(api.told).toEqual([]);
  api.forget();
  expect(await tell("a")).toBe(200);
});

test.each([409, 429, 503])("a %i passes", async (status) => {
  const { api, tell } = await openApi(first({ status }));
  expect([await tell("a"), await tell("a")]).toEqual([status, 200]);
  expect(api.told).toHaveLength(1);
});

test.each([
  ["lose the answer", 1],
  ["lose the request", 0],
] as const)("%s: nobody is answered, and it was done %i times", async (fault, times) => {
  const { api, tell } = await openApi(first(fault));
  await expect(tell("a")).rejects.toThrow(/fetch failed/);
  expect(api.told).toHaveLength(times);
  expect(await tell("a")).toBe(200);
  expect(api.told).toHaveLength(1);
});

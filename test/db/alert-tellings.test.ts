/** How often an alert is told: once, unless nobody knows whether it was, or it has grown. */
import { describe, expect, test } from "vitest";
import { type Concern, isToBeTold } from "../../src/operate/alerts.ts";
import { anInvoiceEvent } from "../worker/testbed.ts";
import { age, aListener, needsReview, states, TICK, watched } from "./watched.ts";

const concern = (firing: boolean, level: number): Concern => ({
  name: "review_grew",
  firing,
  level,
  summary: "",
  todo: null,
});

test.each([500, 404, 302, "silence"] as const)(
  "who answers with %s was not told, and is told again later, until it is",
  async (failure) => {
    let status: number | "silence" = failure;
    const { told, url } = await aListener(() => status);
    const system = await watched({ ALERT_URL: url });
    await needsReview(system);
    for (let n = 0; n < 3; n++) await system.cron();
    // The other two were within the back-off.
    expect(told).toHaveLength(1);
    const [state] = await system.inbox.rows("select last_error, told_at from alert_states");
    expect(state).toEqual({
      last_error: failure === "silence" ? "TypeError" : `Alert:${failure}`,
      told_at: null,
    });
    status = 200;
    await age(system, "0 s");
    for (let n = 0; n < 2; n++) await system.cron();
    expect(states(told)).toEqual(["review_grew firing", "review_grew firing"]);
  },
);

test.each([500, "silence"] as const)(
  "who may have heard of it, though the answer was %s, hears that it is well again",
  async (failure) => {
    let status: number | "silence" = failure;
    const { told, url } = await aListener(() => status);
    const system = await watched({ ALERT_URL: url });
    await needsReview(system);
    await system.cron();
    await system.inbox.rows("delete from webhook_inbox");
    status = 200;
    await age(system, "0 s");
    for (let n = 0; n < 2; n++) await system.cron();
    expect(states(told)).toEqual(["review_grew firing", "review_grew ok"]);
  },
);

test("who is there from now on is told what began before, and not what is well again", async () => {
  const { told, url } = await aListener();
  const system = await watched();
  await needsReview(system);
  await system.inbox.deliver(anInvoiceEvent("invoice.voided", { id: "in_v", status: "void" }));
  await system.inbox.deliver(anInvoiceEvent("invoice.paid", { id: "in_v" }));
  await system.cron();
  await system.inbox.rows("update discrepancies set resolved_at = now(), resolution = 'x'");
  for (let n = 0; n < 2; n++) await system.cron(TICK, { ALERT_URL: url });
  expect(states(told)).toEqual(["review_grew firing"]);
});

test("ticks that overlap tell it once", async () => {
  const { told, url } = await aListener();
  const system = await watched({ ALERT_URL: url });
  await needsReview(system);
  await Promise.all(Array.from({ length: 4 }, () => system.cron()));
  expect(states(told)).toEqual(["review_grew firing"]);
});

test("what nobody knows to have been told, is told when the lease is over", async () => {
  const { told, url } = await aListener();
  const system = await watched({ ALERT_URL: url });
  await needsReview(system);
  await system.inbox.rows(`insert into alert_states (name, available_at, attempts, fence)
    values ('review_grew', now() + interval '60 s', 1, 1)`);
  await system.cron();
  expect(told).toEqual([]);
  await age(system, "0 s");
  await system.cron();
  expect(states(told)).toEqual(["review_grew firing"]);
});

test("what grew is told again after an hour; what grew tenfold, at once; what shrank, not", async () => {
  const { told, url } = await aListener();
  const system = await watched({ ALERT_URL: url });
  const grow = async (count: number): Promise<void> => {
    for (let n = 0; n < count; n++) await needsReview(system);
    await system.cron();
  };
  await grow(1);
  await grow(1);
  expect(told.map(({ level }) => level)).toEqual([1]);
  await age(system, "1 hour");
  await grow(0);
  expect(told.map(({ level }) => level)).toEqual([1, 2]);
  await grow(18);
  expect(told.map(({ level }) => level)).toEqual([1, 2, 20]);
  await system.inbox.rows(
    "delete from webhook_inbox where event_id in (select event_id from webhook_inbox limit 15)",
  );
  await grow(0);
  await age(system, "1 hour");
  await grow(1);
  expect(told.map(({ level }) => level)).toEqual([1, 2, 20, 6]);
});
describe("whether something is to be told (pure)", () => {
  test.each([
    { now: [false, 0], told: null, is: false },
    { now: [true, 1], told: null, is: true },
    { now: [true, 1], told: [true, 1, 99_999], is: false },
    { now: [true, 2], told: [true, 1, 3_599], is: false },
    { now: [true, 2], told: [true, 1, 3_600], is: true },
    { now: [true, 9], told: [true, 1, 0], is: false },
    { now: [true, 10], told: [true, 1, 0], is: true },
    { now: [true, 1], told: [true, 5, 99_999], is: false },
    { now: [false, 0], told: [true, 5, 0], is: true },
    { now: [false, 0], told: [false, 0, 99_999], is: false },
    { now: [true, 1], told: [false, 0, 0], is: true },
    { now: [true, 0], told: [true, 0, 99_999], is: false },
  ] as const)("$now after $told: $is", ({ now: [firing, level], told, is }) => {
    const last = told && {
      firing: told[0],
      level: told[1],
      secondsAgo: told[2],
      uncertain: false,
    };
    expect(isToBeTold(concern(firing, level), last)).toBe(is);
  });
});

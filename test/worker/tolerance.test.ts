/** A signature is good for so many seconds before and after its time, to the second. */
import { afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import { signature } from "../local/sign.ts";
import { anInvoiceEvent, logLines, openTestbed, SECRET } from "./testbed.ts";
import type { Testbed } from "./testbed.ts";

const NOW = 1_800_000_000;
const PATH = "/webhooks/stripe/billing";
afterEach(() => vi.restoreAllMocks());

/** The Worker's clock; Postgres' own is not touched by it. */
function stopClock(milliseconds = 0): void {
  vi.spyOn(Date, "now").mockReturnValue(NOW * 1000 + milliseconds);
}

describe.each([
  { tolerance: undefined, seconds: 300 },
  { tolerance: "7", seconds: 7 },
  { tolerance: "86400", seconds: 86_400 },
])("a tolerance of $tolerance", ({ tolerance, seconds }) => {
  let inbox: Testbed;
  beforeAll(async () => {
    inbox = await openTestbed({ env: { STRIPE_WEBHOOK_TOLERANCE_SECONDS: tolerance } });
  });

  test.each([
    { offset: 0, status: 200 },
    { offset: -(seconds - 1), status: 200 },
    { offset: -seconds, status: 200 },
    { offset: -(seconds + 1), status: 400 },
    { offset: seconds - 1, status: 200 },
    { offset: seconds, status: 200 },
    { offset: seconds + 1, status: 400 },
  ])("answers $status to a signature made at $offset s from now", async ({ offset, status }) => {
    stopClock();
    const lines = await logLines(async () => {
      const answer = await inbox.deliver(anInvoiceEvent(), { timestamp: NOW + offset });
      expect(answer).toMatchObject({ status });
    });
    const invalid = status === 400 ? "timestamp" : undefined;
    expect(lines.map((line) => [line["level"], line["invalid"]])).toEqual([
      [status === 400 ? "warn" : "info", invalid],
    ]);
  });
});

test("a second that has begun does not count", async () => {
  const inbox = await openTestbed();
  stopClock(999);
  expect(await inbox.deliver(anInvoiceEvent(), { timestamp: NOW - 300 })).toMatchObject({
    status: 200,
  });
  expect(await inbox.deliver(anInvoiceEvent(), { timestamp: NOW + 301 })).toMatchObject({
    status: 400,
  });
});

describe("a time that is no number of seconds is refused, even under its own right signature", () => {
  let inbox: Testbed;
  beforeAll(async () => void (inbox = await openTestbed()));

  test.each([
    "abc",
    "",
    `${NOW}.0`,
    `${NOW}s`,
    ` ${NOW}`,
    `+${NOW}`,
    `-${NOW}`,
    `0x${NOW.toString(16)}`,
    "1.8e9",
    "NaN",
    "Infinity",
    `${NOW}000`,
    `${NOW}0000000000000000000000`,
  ])("t=%s", async (timestamp) => {
    stopClock();
    expect(await inbox.deliver(anInvoiceEvent(), { timestamp })).toMatchObject({
      status: 400,
      outcome: "invalid",
      event: undefined,
    });
    expect(await inbox.books()).toMatchObject({ inbox: 0 });
  });
});

test("of two times neither can be believed, whichever of them is signed", async () => {
  const inbox = await openTestbed();
  stopClock();
  const body = JSON.stringify(anInvoiceEvent());
  const fresh = await signature(body, SECRET, NOW);
  const stale = await signature(body, SECRET, NOW - 4_000);
  for (const header of [
    `t=${NOW},t=${NOW - 4_000},v1=${stale}`,
    `t=${NOW - 4_000},t=${NOW},v1=${stale}`,
    `t=${NOW - 4_000},t=${NOW},v1=${fresh}`,
    `t=${NOW},v1=${fresh},t=${NOW - 4_000}`,
    `t=abc,t=${NOW},v1=${fresh}`,
  ]) {
    const answer = await inbox.post(PATH, { body, headers: { "stripe-signature": header } });
    expect(answer, header).toMatchObject({ status: 400 });
  }
  const headers = { "stripe-signature": `v1=${fresh},t=${NOW}` };
  expect(await inbox.post(PATH, { body, headers })).toMatchObject({ status: 200 });
});

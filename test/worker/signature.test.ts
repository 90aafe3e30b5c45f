/** Only what Stripe signed with a secret of this very endpoint gets in; everything else is a 400. */
import { beforeAll, describe, expect, test } from "vitest";
import worker from "../../src/index.ts";
import { signature, signatureHeader } from "../local/sign.ts";
import { anInvoiceEvent, CONNECT_SECRET, logLines, openTestbed, SECRET } from "./testbed.ts";
import type { Testbed } from "./testbed.ts";

const PATH = "/webhooks/stripe/billing";
const now = (): number => Math.floor(Date.now() / 1000);

describe.each([
  { door: "an app made from the shipped table", options: {} },
  { door: "the Worker as it is deployed", options: { app: worker } },
])("$door", ({ options }) => {
  test("takes a signed event, and leaves one row", async () => {
    const inbox = await openTestbed(options);
    const event = anInvoiceEvent();
    const answer = await inbox.deliver(event);
    expect(answer.text).toBe(JSON.stringify({ outcome: "processed", event: event.id }));
    expect(answer.headers.get("content-type")).toMatch(/^application\/json/);
    expect(answer.status).toBe(200);
    expect(await inbox.books()).toMatchObject({ inbox: 1, entries: 1, messages: 1 });
  });

  test("refuses the same event when one character of its signature is another", async () => {
    const inbox = await openTestbed(options);
    const body = JSON.stringify(anInvoiceEvent());
    const header = await signatureHeader(body, SECRET);
    const forged = header.replace(/.$/, (last) => (last === "0" ? "1" : "0"));
    const headers = { "stripe-signature": forged };
    expect(await inbox.post(PATH, { body, headers })).toMatchObject({ status: 400 });
    expect(await inbox.books()).toMatchObject({ inbox: 0 });
  });
});

describe("a header that proves nothing", () => {
  let inbox: Testbed;
  beforeAll(async () => void (inbox = await openTestbed()));

  const body = JSON.stringify(anInvoiceEvent());
  const signed = async (): Promise<string> => signature(body, SECRET, now());

  test.each<{ header: string; build: () => Promise<string | undefined> }>([
    { header: "is missing", build: async () => undefined },
    { header: "is empty", build: async () => "" },
    { header: "is garbage", build: async () => "garbage" },
    { header: "is separators only", build: async () => ",,==,=,t,v1," },
    { header: "has a time alone", build: async () => `t=${now()}` },
    { header: "has a time and an empty signature", build: async () => `t=${now()},v1=` },
    { header: "has a signature without a time", build: async () => `v1=${await signed()}` },
    {
      header: "has the right signature under the scheme v0 alone",
      build: async () => signatureHeader(body, SECRET, { scheme: "v0" }),
    },
    {
      header: "has the right signature, cut short",
      build: async () => `t=${now()},v1=${(await signed()).slice(0, -1)}`,
    },
    {
      header: "has the right signature of another time",
      build: async () => `t=${now()},v1=${await signature(body, SECRET, now() - 60)}`,
    },
  ])("$header: 400, no row, a warning without a stack", async ({ build }) => {
    const header = await build();
    const lines = await logLines(async () => {
      const headers = header === undefined ? {} : { "stripe-signature": header };
      const answer = await inbox.post(PATH, { body, headers });
      expect(answer).toMatchObject({ status: 400, text: '{"outcome":"invalid"}' });
    });
    expect(lines).toEqual([
      expect.objectContaining({ level: "warn", status: 400, invalid: "signature" }),
    ]);
    expect(JSON.stringify(lines)).not.toMatch(/\bat .*:\d+|Error/);
    expect(await inbox.books()).toMatchObject({ inbox: 0 });
  });
});

describe("a header with several signatures", () => {
  const bad = "0".repeat(64);
  test.each<{ name: string; around: (good: string) => string }>([
    { name: "a wrong one first", around: (good) => `v1=${bad},v1=${good}` },
    { name: "a wrong one last", around: (good) => `v1=${good},v1=${bad}` },
    { name: "a v0 beside it", around: (good) => `v0=${bad},v1=${good}` },
    {
      name: "a hundred wrong ones around it",
      around: (good) =>
        [...Array(50).fill(`v1=${bad}`), `v1=${good}`, ...Array(50).fill(`v1=${bad}`)].join(),
    },
  ])("is enough when one of them is right: $name", async ({ around }) => {
    const inbox = await openTestbed();
    const body = JSON.stringify(anInvoiceEvent());
    const at = now();
    const header = `t=${at},${around(await signature(body, SECRET, at))}`;
    const answer = await inbox.post(PATH, { body, headers: { "stripe-signature": header } });
    expect(answer).toMatchObject({ status: 200, outcome: "processed" });
  });

  test("is not enough when none of them is right", async () => {
    const inbox = await openTestbed();
    const headers = { "stripe-signature": `t=${now()},v1=${bad},v1=${bad}` };
    const body = JSON.stringify(anInvoiceEvent());
    expect(await inbox.post(PATH, { body, headers })).toMatchObject({ status: 400 });
    expect(await inbox.books()).toMatchObject({ inbox: 0 });
  });
});

describe("an event signed for another endpoint", () => {
  test("is refused here, and taken there", async () => {
    const inbox = await openTestbed();
    const event = anInvoiceEvent("invoice.paid", {}, { account: "acct_invented" });
    const secret = CONNECT_SECRET;
    expect(await inbox.deliver(event, { endpoint: "billing", secret })).toMatchObject({
      status: 400,
    });
    expect(await inbox.books()).toMatchObject({ inbox: 0 });
    expect(await inbox.deliver(event, { endpoint: "connect", secret })).toMatchObject({
      status: 200,
    });
    expect(await inbox.rows("select endpoint from webhook_inbox")).toEqual([
      { endpoint: "connect" },
    ]);
  });
});

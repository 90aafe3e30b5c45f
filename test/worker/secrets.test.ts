/** A secret binding may be padded, or hold several while one is rolled; an empty one is our fault. */
import { describe, expect, test } from "vitest";
import { anInvoiceEvent, CONNECT_SECRET, logLines, openTestbed, SECRET } from "./testbed.ts";

const OLD = "whsec_the_one_before";

describe("a delivery is taken when the binding holds its secret", () => {
  test.each([
    { held: "with a newline at its end", binding: `${SECRET}\n` },
    { held: "with CRLF at its end", binding: `${SECRET}\r\n` },
    { held: "between blanks and tabs", binding: ` \t${SECRET}\t ` },
    { held: "after another, comma between", binding: `whsec_new,${SECRET}` },
    { held: "before another, comma and blank between", binding: `${SECRET}, whsec_new` },
    { held: "on a line of its own among three", binding: `whsec_a\n${SECRET}\nwhsec_b\n` },
    { held: "among stray commas", binding: `,, ,${SECRET},` },
  ])("$held", async ({ binding }) => {
    const inbox = await openTestbed({ env: { STRIPE_WEBHOOK_SECRET: binding } });
    expect(await inbox.deliver(anInvoiceEvent())).toMatchObject({ status: 200 });
    expect(await inbox.deliver(anInvoiceEvent(), { secret: "whsec_none" })).toMatchObject({
      status: 400,
    });
    expect(await inbox.books()).toMatchObject({ inbox: 1, entries: 1 });
  });
});

test("while a secret is rolled both are good; once the old one is gone it is refused", async () => {
  const during = await openTestbed({ env: { STRIPE_WEBHOOK_SECRET: `${SECRET},${OLD}` } });
  expect(await during.deliver(anInvoiceEvent(), { secret: SECRET })).toMatchObject({ status: 200 });
  expect(await during.deliver(anInvoiceEvent(), { secret: OLD })).toMatchObject({ status: 200 });

  const after = await openTestbed();
  expect(await after.deliver(anInvoiceEvent(), { secret: SECRET })).toMatchObject({ status: 200 });
  expect(await after.deliver(anInvoiceEvent(), { secret: OLD })).toMatchObject({ status: 400 });
  expect(await after.books()).toMatchObject({ inbox: 1 });
});

test("several secrets are never one: their text as a whole opens nothing", async () => {
  const both = `${SECRET},${OLD}`;
  const inbox = await openTestbed({ env: { STRIPE_WEBHOOK_SECRET: both } });
  expect(await inbox.deliver(anInvoiceEvent(), { secret: both })).toMatchObject({ status: 400 });
});

describe("without a secret the fault is ours: 503, no row, whatever the body is signed with", () => {
  test.each([
    { binding: undefined, as: "unset" },
    { binding: "", as: "empty" },
    { binding: " \n\t", as: "blank" },
    { binding: ", ,", as: "commas" },
    { binding: 42, as: "no text" },
  ])("$as", async ({ binding }) => {
    const inbox = await openTestbed({ env: { STRIPE_WEBHOOK_SECRET: binding } });
    const lines = await logLines(async () => {
      for (const secret of ["", SECRET, "undefined", String(binding)]) {
        const answer = await inbox.deliver(anInvoiceEvent(), { secret });
        expect(answer).toMatchObject({ status: 503, text: '{"outcome":"unavailable"}' });
      }
    });
    expect(lines).toHaveLength(4);
    for (const line of lines) {
      expect(line).toMatchObject({ level: "error", setting: "STRIPE_WEBHOOK_SECRET" });
    }
    expect(await inbox.books()).toMatchObject({ inbox: 0 });
  });

  test("the other endpoint, whose secret is set, goes on", async () => {
    const inbox = await openTestbed({ env: { STRIPE_WEBHOOK_SECRET: "" } });
    const secret = CONNECT_SECRET;
    expect(await inbox.deliver(anInvoiceEvent(), { endpoint: "connect", secret })).toMatchObject({
      status: 200,
    });
    expect(await inbox.deliver(anInvoiceEvent())).toMatchObject({ status: 503 });
  });
});

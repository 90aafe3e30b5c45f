/**
 * A signed body that is no event is refused with a 400 that leaves no row, and one error line that
 * names the part at fault: Stripe signed it, so not to understand it is ours to look at.
 */
import { beforeAll, describe, expect, test } from "vitest";
import { anInvoiceEvent, logLines, openTestbed } from "./testbed.ts";
import type { Testbed } from "./testbed.ts";

let inbox: Testbed;
beforeAll(async () => void (inbox = await openTestbed()));

async function expectRefused(body: string, part: string): Promise<void> {
  const before = await inbox.books();
  const lines = await logLines(async () => {
    const answer = await inbox.deliver(body);
    expect(answer).toMatchObject({ status: 400, text: '{"outcome":"invalid"}' });
  });
  expect(lines).toEqual([
    {
      level: "error",
      message: "delivery",
      endpoint: "billing",
      status: 400,
      outcome: "invalid",
      invalid: "shape",
      detail: part,
      ms: expect.any(Number),
    },
  ]);
  expect(await inbox.books()).toEqual(before);
}

/** An event with some fields changed, as JSON; `undefined` leaves one out. */
const event = (fields: object): string => JSON.stringify({ ...anInvoiceEvent(), ...fields });

describe("JSON that is no object", () => {
  test.each([
    ...["null", "[]", "42", '"x"', "true", "-0"].map((body) => ({ what: body, body })),
    { what: "an event in a list", body: `[${event({})}]` },
    { what: "an event in a text", body: JSON.stringify(event({})) },
  ])("$what", ({ body }) => expectRefused(body, "not an object"));
});

describe("text that is no JSON", () => {
  test.each([
    { what: "blanks", body: " \n" },
    { what: "half an event", body: event({}).slice(0, -1) },
    { what: "an event and a half", body: `${event({})}{` },
    { what: "an event behind a byte order mark", body: `\uFEFF${event({})}` },
    { what: "a trailing comma", body: event({}).replace(/}$/, ",}") },
    { what: "single quotes", body: "{'object':'event'}" },
    { what: "NaN", body: event({ created: "?" }).replace('"?"', "NaN") },
    { what: "a raw line break in a text", body: event({ note: "?" }).replace("?", "\n") },
    { what: "a form", body: "object=event&id=evt_1" },
  ])("$what", ({ body }) => expectRefused(body, "not JSON"));
});

describe("an object without the parts of an event", () => {
  /** Values that the part must not have; `undefined` leaves it out. */
  const WRONG: Readonly<Record<string, readonly unknown[]>> = {
    object: [null, "list", "Event", "event ", "", 1, {}, "v2.core.events"],
    id: [
      undefined,
      null,
      "",
      7,
      {},
      ["evt_1"],
      "evt 1",
      "evt\t1",
      "evt_1\n",
      "evt\u0000",
      "evt\u007f",
      "evt_é",
      "evt_\u00a0",
      "evt_😀",
      "\ud800",
      `evt_${"x".repeat(252)}`,
      "x".repeat(6_400),
    ],
    type: [
      undefined,
      null,
      "",
      7,
      {},
      ["invoice.paid"],
      "a\u0000b",
      "a\ud800b",
      "\udc00",
      "x".repeat(256),
      "😀".repeat(256),
    ],
    data: [undefined, null, "x", 7, [], [{ object: {} }]],
    "data.object": [undefined, null, "in_1", 7, true, [], [{}]],
  };

  const cases = Object.entries(WRONG).flatMap(([part, values]) =>
    values.map((value) => ({
      part,
      body: event(part === "data.object" ? { data: { object: value } } : { [part]: value }),
      shown: Array.from(JSON.stringify(value) ?? "nothing")
        .slice(0, 30)
        .join(""),
    })),
  );
  test.each(cases)("$part is $shown", ({ part, body }) => expectRefused(body, part));

  test("nothing at all", () => expectRefused("{}", "id"));

  test("everything, but under __proto__", () =>
    expectRefused(`{"__proto__":${event({})},"constructor":${event({})}}`, "id"));

  test.each(["id", "type"])("a thin notification without a usable %s", async (part) => {
    const thin = { object: "v2.core.event", data: undefined };
    await expectRefused(event({ ...thin, [part]: undefined }), part);
    await expectRefused(event({ ...thin, [part]: "" }), part);
  });
});

describe("the longest names that pass", () => {
  test.each([
    { what: "an id of 255 characters", fields: { id: `evt_${"~".repeat(251)}` } },
    { what: "an id of one character", fields: { id: "!" } },
    { what: "a type of 255 characters", fields: { type: "x".repeat(255) } },
    { what: "a type of 255 characters beyond the BMP", fields: { type: "😀".repeat(255) } },
    { what: "a type with a blank, a tab and an accent", fields: { type: " é\t" } },
    { what: "no `object` at all", fields: { object: undefined } },
    { what: "no more than the four parts", fields: { livemode: undefined, created: undefined } },
  ])("$what", async ({ fields }) => {
    const { id, type } = { ...anInvoiceEvent(), ...fields };
    const answer = await inbox.deliver(event({ id, ...fields }));
    expect(answer).toMatchObject({ status: 200, event: id });
    const stored = "select event_type from webhook_inbox where event_id = $1";
    expect(await inbox.rows(stored, [id])).toEqual([{ event_type: type }]);
  });
});

/** Three levels lead to `data.object.deep`. */
const nested = (levels: number, open: string, close: string): string =>
  event({ data: { object: { deep: "?" } } }).replace(
    '"?"',
    `${open.repeat(levels - 3)}1${close.repeat(levels - 3)}`,
  );

/** The same, and the deep value replaced by a later one of its key. */
const twice = (levels: number): string =>
  nested(levels, "[", "]").replace(/}}(?=,"livemode")/, ',"deep":1}}');

describe("nesting, the outermost object counted as the first level", () => {
  test.each([
    { of: "arrays", open: "[", close: "]" },
    { of: "objects", open: '{"a":', close: "}" },
  ])("200 levels of $of pass, 201 do not", async ({ open, close }) => {
    expect(await inbox.deliver(nested(200, open, close))).toMatchObject({ status: 200 });
    await expectRefused(nested(201, open, close), "nesting");
  });

  test.each([
    { what: "100,000 levels", levels: 100_000, closed: true },
    { what: "100,000 levels, never closed", levels: 100_000, closed: false },
    { what: "4 MiB of levels", levels: 2_090_000, closed: true },
  ])("$what are refused, not run into", async ({ levels, closed }) => {
    await expectRefused(nested(levels, "[", closed ? "]" : ""), "nesting");
  });

  test("a deep value that a later one of the same key replaces is deep all the same", async () => {
    expect(await inbox.deliver(twice(200))).toMatchObject({ status: 200 });
    await expectRefused(twice(201), "nesting");
  });

  test("brackets within texts are text", async () => {
    const note = `${"[{".repeat(500)}"\\"${"[".repeat(500)}\\`;
    expect(await inbox.deliver(event({ note, [note]: [note] }))).toMatchObject({ status: 200 });
  });
});

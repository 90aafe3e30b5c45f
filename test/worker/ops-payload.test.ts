/** What Stripe sent, as an operator reads it on the page, and downloads it. */
import { beforeAll, describe, expect, test } from "vitest";
import { readTrace, traceStatements } from "../../src/billing/trace.ts";
import { withConnection } from "../../src/db/with-connection.ts";
import { inspectEvent, type Payload, type PayloadPart } from "../../src/operate/inspection.ts";
import { aVisitor, type Visitor } from "./logged-in.ts";
import { anOperator, BEARER, type Operator } from "./operator.ts";

const TIMEOUTS = { lockTimeoutMs: 3_000, statementTimeoutMs: 8_000 };
const TRACING = { statements: traceStatements, read: readTrace };
const MOST = 100_000;

let operator: Operator;
let visitor: Visitor;
beforeAll(async () => {
  operator = await anOperator();
  visitor = await aVisitor(operator);
});

/** As Postgres writes it; nine characters more than the text. */
const holding = (text: string) => `{"a": "${text}"}`;
const padded = (bytes: number) => holding("x".repeat(bytes - 9));

/** An event with exactly this JSON, or a purged one. */
async function store(eventId: string, json: string | null): Promise<void> {
  await operator.inbox.rows(
    `insert into webhook_inbox (endpoint, event_id, event_type, payload, processed_at, outcome)
     values ('billing', $1, 'invoice.paid', $2::jsonb, now(), 'processed')`,
    [eventId, json],
  );
}

async function read(eventId: string, part: PayloadPart): Promise<Payload | null | undefined> {
  const database = { connectionString: operator.inbox.databaseUrl, pipeline: true };
  const time = { deadlineMs: 9_000, afterwards: () => undefined };
  const found = await withConnection(database, time, ({ db }) =>
    inspectEvent(db, { endpoint: "billing", eventId }, part, TRACING, TIMEOUTS),
  );
  return found?.payload;
}

async function storedText(eventId: string): Promise<unknown> {
  const [row] = await operator.inbox.rows(
    "select payload::text as text from webhook_inbox where event_id = $1",
    [eventId],
  );
  return row?.["text"];
}

const pageOf = (eventId: string) => visitor.see(`/ops/event?endpoint=billing&event_id=${eventId}`);
const download = (eventId: string, endpoint = "billing") =>
  visitor.see(`/ops/event/payload?endpoint=${endpoint}&event_id=${eventId}`);

describe("an excerpt", () => {
  test("is laid out, with every digit", async () => {
    await store("evt_digits", '{"a": 12345678901234567890.10, "b": [0.1000, 1e2]}');
    const laidOut =
      '{\n    "a": 12345678901234567890.10,\n    "b": [\n        0.1000,\n        100\n    ]\n}';
    expect(await read("evt_digits", "excerpt")).toEqual({ text: laidOut, bytes: 50, whole: true });
    const text = '{"a": 12345678901234567890.10, "b": [0.1000, 100]}';
    expect(await read("evt_digits", "whole")).toEqual({ text, bytes: 50, whole: true });
  });

  test("is laid out up to 64 KiB, and beyond that as it is stored", async () => {
    await store("evt_just", padded(65_536));
    await store("evt_beyond", padded(65_537));
    expect(await read("evt_just", "excerpt")).toMatchObject({
      text: expect.stringMatching(/^\{\n {4}"a"/),
      bytes: 65_536,
      whole: true,
    });
    expect(await read("evt_beyond", "excerpt")).toEqual({
      text: padded(65_537),
      bytes: 65_537,
      whole: true,
    });
  });

  test.each([
    { length: MOST, whole: true },
    { length: MOST + 1, whole: false },
  ])("of $length characters is whole: $whole", async ({ length, whole }) => {
    const json = padded(length);
    await store(`evt_${length}`, json);
    const text = json.slice(0, MOST);
    expect(await read(`evt_${length}`, "excerpt")).toEqual({ text, bytes: length, whole });
    expect(await read(`evt_${length}`, "whole")).toEqual({
      text: json,
      bytes: length,
      whole: true,
    });
  });

  test("does not end within a character", async () => {
    const json = holding("\u{1F9FE}".repeat(60_000));
    await store("evt_pairs", json);
    const excerpt = await read("evt_pairs", "excerpt");
    expect(excerpt).toMatchObject({ bytes: 240_009, whole: false });
    expect(excerpt?.text.isWellFormed()).toBe(true);
    expect(excerpt?.text.slice(0, -1)).toBe(json.slice(0, MOST - 1));
  });

  test("of 4 MiB is its beginning, on a page of reasonable size", async () => {
    const json = holding("<".repeat(4 * 1024 * 1024));
    await store("evt_large", json);
    expect(await read("evt_large", "excerpt")).toMatchObject({
      text: json.slice(0, MOST),
      bytes: json.length,
      whole: false,
    });
    const page = await pageOf("evt_large");
    expect(page.status).toBe(200);
    expect(page.text).toContain("4,194,313 bytes, the beginning");
    expect(page.text.length).toBeLessThan(5 * MOST);
    expect((await download("evt_large")).text).toBe(json);
  });

  test("of what is nested deep is as long as any other, however much its blanks are", async () => {
    const json = `{"a": ${"[".repeat(190)}${Array.from({ length: 10_000 }, () => 1).join(", ")}${"]".repeat(190)}}`;
    await store("evt_deep", json);
    const excerpt = await read("evt_deep", "excerpt");
    expect(excerpt).toMatchObject({ bytes: json.length, whole: false });
    expect(excerpt?.text).toHaveLength(MOST);
    expect(excerpt?.text.startsWith('{\n    "a": [\n        [')).toBe(true);
    expect((await download("evt_deep")).text).toBe(json);
  });

  test("of what was purged is none", async () => {
    await store("evt_purged", null);
    for (const part of ["excerpt", "whole"] as const)
      expect(await read("evt_purged", part)).toBe(null);
    const { status, text } = await pageOf("evt_purged");
    expect(status).toBe(200);
    expect(text).toContain("It was purged");
    expect(text).not.toContain("/ops/event/payload");
  });
});

test("whatever is in it is text on the page", async () => {
  await store("evt_markup", '{"a": "</pre><script>alert(1)</script><!-- \'&amp;"}');
  const { status, text } = await pageOf("evt_markup");
  expect(status).toBe(200);
  expect(text).toContain("&lt;/pre&gt;&lt;script&gt;alert(1)&lt;/script&gt;&lt;!-- &#39;&amp;amp;");
  expect(text).not.toMatch(/<script|<!--/);
});

describe("the download", () => {
  test("is to the letter what is stored, as a file, and never a page", async () => {
    await store(
      "evt_file",
      '{"b":1.50,"a":"</pre><script>\\u00e9\\n\u{1F9FE}","c":12345678901234567890.10}',
    );
    const { status, text, headers } = await download("evt_file");
    expect(status).toBe(200);
    expect(text).toBe(await storedText("evt_file"));
    expect(text).toContain("12345678901234567890.10");
    expect(headers.get("content-type")).toBe("application/json; charset=utf-8");
    expect(headers.get("content-disposition")).toBe('attachment; filename="event.json"');
    expect(headers.get("x-content-type-options")).toBe("nosniff");
    expect(headers.get("cache-control")).toBe("no-store");
  });

  test.each(["evt_unknown", "evt_gone", "", "%00"])("of %j is not there: 404", async (eventId) => {
    if (eventId === "evt_gone") await store(eventId, null);
    const { status, headers } = await download(eventId);
    expect(status).toBe(404);
    expect(headers.get("content-type")).toContain("text/html");
  });

  test("is of one endpoint", async () => {
    await store("evt_here", "{}");
    expect((await download("evt_here")).status).toBe(200);
    expect((await download("evt_here", "connect")).status).toBe(404);
  });

  test("is for whoever is logged in", async () => {
    await store("evt_secret", '{"private": true}');
    const path = "/ops/event/payload?endpoint=billing&event_id=evt_secret";
    const wrong = { authorization: `${BEARER.authorization}x` };
    for (const headers of [{}, wrong]) {
      const said = await operator.ask(path, { headers });
      expect(said.status).toBe(303);
      expect(said.headers.get("location")).toBe(`/ops/login?next=${encodeURIComponent(path)}`);
      expect(said.text).not.toContain("private");
    }
  });
});

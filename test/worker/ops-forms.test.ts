/** The forms of the operator's pages: who may send them, what they do at most, and what one is told. */
import { beforeEach, describe, expect, test } from "vitest";
import { aVisitor, HERE, type Visitor } from "./logged-in.ts";
import { actions, anOperator, type Operator, parked, UNUSABLE, WHY } from "./operator.ts";
import { anInvoiceEvent } from "./testbed.ts";
import { states } from "./waiting.ts";

const FORM = { "content-type": "application/x-www-form-urlencoded" };
const FORMS = [
  {
    path: "/ops/events/requeue",
    fields: { reason: UNUSABLE, count: "1", why: WHY },
    back: "/ops/review",
    told: "1 event was requeued",
  },
  {
    path: "/ops/messages/requeue",
    fields: { reason: "TypeError", count: "1", why: WHY },
    back: "/ops/outbox",
    told: "1 message leaves again",
  },
  {
    path: "/ops/discrepancies/resolve",
    fields: { kind: "paid_after_void", found_until: "2099-01-01", count: "1", note: WHY },
    back: "/ops/discrepancies",
    told: "1 discrepancy is resolved",
  },
  {
    path: "/ops/discrepancies/resolve",
    fields: { id: "1", count: "1", note: WHY },
    back: "/ops/discrepancies",
    told: "1 discrepancy is resolved",
  },
] as const;

let operator: Operator;
let visitor: Visitor;
beforeEach(async () => {
  operator = await anOperator();
  visitor = await aVisitor(operator);
  const { inbox } = operator;
  for (let n = 0; n < 3; n++) await inbox.deliver(anInvoiceEvent());
  await inbox.rows("update outbox set parked_at = now(), last_error = 'TypeError'");
  await parked(operator, 3);
  await inbox.rows(
    `insert into discrepancies (kind, object_id, detail)
     select 'paid_after_void', 'in_' || n, '{}' from generate_series(1, 3) n`,
  );
});

const encoded = (fields: Readonly<Record<string, string>>) =>
  new URLSearchParams(fields).toString();

describe.each(FORMS)("POST $path with $fields", ({ path, fields, back, told }) => {
  test("does as much as was agreed to and no more, and leads to where it is told", async () => {
    const { status, headers } = await visitor.submit(path, fields);
    expect(status).toBe(303);
    expect(headers.get("location")).toBe(`${back}?done=1-1`);
    const page = await visitor.see(`${back}?done=1-1`);
    for (const words of [told, WHY]) expect(page.text).toContain(words);
    expect(await actions(operator)).toEqual([
      expect.objectContaining({ operator: "Ada", via: "session", affected: 1, why: WHY }),
    ]);
  });

  test("is 401 without a session, keeps what was typed, and does nothing", async () => {
    const init = { method: "POST", headers: { ...FORM, origin: HERE }, body: encoded(fields) };
    const { status, text, headers } = await operator.ask(path, init);
    expect(status).toBe(401);
    expect(headers.get("content-type")).toContain("text/html");
    expect(text).toContain(`readonly="">${WHY}</textarea>`);
    expect(await actions(operator)).toEqual([]);
  });

  test("is 403 from another site, and does nothing", async () => {
    for (const from of ["https://evil.test", "null", "http://inbox.test"]) {
      const { status, text } = await visitor.submit(path, fields, { origin: from });
      expect(status).toBe(403);
      expect(text).toContain("made by another site. Nothing was done.");
    }
    const init = { method: "POST", headers: { ...FORM, origin: "https://evil.test" } };
    const said = await operator.ask(path, { ...init, body: encoded(fields) });
    expect(said.status).toBe(403);
    expect(await actions(operator)).toEqual([]);
  });

  test("without a reason is 400, with the form again", async () => {
    const blank = "why" in fields ? { ...fields, why: " " } : { ...fields, note: " " };
    const { status, text } = await visitor.submit(path, blank);
    expect(status).toBe(400);
    expect(text).toContain("must say why");
    expect(text).toContain(`<form method="post" action="${path}"`);
    expect(await actions(operator)).toEqual([]);
  });
});

test("what was typed is there again when it is refused, as text", async () => {
  const typed = `</textarea><b> ${"x".repeat(490)}`;
  const { status, text } = await visitor.submit("/ops/events/requeue", {
    reason: UNUSABLE,
    count: "1",
    why: typed,
  });
  expect(status).toBe(400);
  expect(text).toContain(`&lt;/textarea&gt;&lt;b&gt; ${"x".repeat(490)}</textarea>`);
});

test.each([
  { wrong: { count: "0" }, named: "count: must be a whole number" },
  { wrong: { count: "" }, named: "count: must be a whole number" },
  { wrong: { event_id: "evt_1" }, named: "Say which" },
  { wrong: { shown: "odd" }, named: "shown: must be" },
  { wrong: { odd: "x" }, named: "odd: is not known" },
])("a form with $wrong is 400 by name, and does nothing", async ({ wrong, named }) => {
  const fields = { reason: UNUSABLE, count: "1", why: WHY, ...wrong };
  const { status, text } = await visitor.submit("/ops/events/requeue", fields);
  expect(status).toBe(400);
  expect(text).toContain(named);
  expect(await actions(operator)).toEqual([]);
});

test("a form that is too long, or says one thing twice, is refused", async () => {
  const fields = { reason: UNUSABLE, count: "1", why: "x".repeat(17_000) };
  expect((await visitor.submit("/ops/events/requeue", fields)).status).toBe(413);
  const body = `${encoded({ reason: UNUSABLE, count: "1", why: WHY })}&count=3`;
  const headers = { ...FORM, cookie: visitor.cookie, origin: HERE };
  const said = await operator.ask("/ops/events/requeue", { method: "POST", headers, body });
  expect(said.status).toBe(400);
  expect(said.text).toContain("count: is given twice");
  expect(await actions(operator)).toEqual([]);
});

test("nothing changed is 409, and on no record; one's own of just now is told again", async () => {
  const fields = { reason: UNUSABLE, count: "3", why: WHY };
  const send = (by: Visitor, why = WHY) => by.submit("/ops/events/requeue", { ...fields, why });
  for (let n = 0; n < 2; n++) {
    expect((await send(visitor)).headers.get("location")).toBe("/ops/review?done=1-1");
  }
  const others = [send(visitor, "another reason"), send(await aVisitor(operator, "Grace"))];
  for (const said of await Promise.all(others)) {
    expect(said).toMatchObject({
      status: 409,
      text: expect.stringContaining("Nothing was changed."),
    });
  }
  await operator.inbox.rows("update operator_actions set at = now() - interval '2 min'");
  expect((await send(visitor)).status).toBe(409);
  expect(await actions(operator)).toHaveLength(1);
});

test("one that was found again since it was seen is shown anew, and stays open", async () => {
  const stale = { id: "2", found_at: "2026-01-01T00:00:00Z", count: "1", note: WHY };
  const { status, text } = await visitor.submit("/ops/discrepancies/resolve", stale);
  expect(status).toBe(400);
  expect(text).toContain("It was found again since you saw it");
  expect(text).toContain(`${WHY}</textarea>`);
  expect(await actions(operator)).toEqual([]);
});

const shows = async (by: Visitor, done: string) => {
  const { text } = await by.see(`/ops/review?done=${done}`);
  expect(text).toContain("</html>");
  return text.includes("Done by you") || text.includes("requeued, due");
};

describe("done=", () => {
  test("shows one's own record, for a quarter of an hour", async () => {
    await visitor.submit("/ops/events/requeue", { reason: UNUSABLE, count: "1", why: WHY });
    expect(await shows(visitor, "1-1")).toBe(true);
    expect(await shows(await aVisitor(operator, "Grace"), "1-1")).toBe(false);
    const become = (minutes: number) =>
      operator.inbox.rows(`update operator_actions set at = now() - interval '${minutes} min'`);
    await become(14);
    expect(await shows(visitor, "1-1")).toBe(true);
    await become(16);
    expect(await shows(visitor, "1-1")).toBe(false);
  });

  test("of what is no record shows nothing", async () => {
    await visitor.submit("/ops/events/requeue", { reason: UNUSABLE, count: "1", why: WHY });
    for (const done of [
      "",
      "2-2",
      "2-1",
      "0-0",
      "1",
      "-",
      "x-y",
      "1-1-1",
      "1%2C1",
      "999999999999999-999999999999999",
      "1-9999999999999999",
      "%3Cb%3E",
    ]) {
      expect([done, await shows(visitor, done)]).toEqual([done, false]);
    }
    expect(await states(operator.inbox)).toMatchObject({ parked: 2, waiting: 1 });
  });
});

/** The operator's pages, read through the door: on an empty database, in trouble, and filtered. */
import { beforeAll, describe, expect, test } from "vitest";
import { aVisitor, HERE, logIn, type Visitor } from "./logged-in.ts";
import { anOperator, type Operator, parked, UNUSABLE } from "./operator.ts";
import { query } from "./testbed.ts";

const PAGES = [
  { path: "/ops", says: "No event came in within the last hour" },
  { path: "/ops/events", says: "No event is like that." },
  { path: "/ops/review", says: "No event needs review." },
  { path: "/ops/ignored", says: "No event was ignored whose payload is there." },
  { path: "/ops/discrepancies", says: "No discrepancy is open." },
  { path: "/ops/outbox", says: "There is no such message." },
  { path: "/ops/gaps", says: "No sweep has found anything missing." },
  { path: "/ops/actions", says: "Nobody has done anything yet." },
  { path: "/ops/doctor", says: "Each thing that was looked at" },
] as const;
const ASKING = [
  { path: `/ops/events/requeue?reason=${UNUSABLE}`, says: "There is nothing to do" },
  { path: "/ops/messages/requeue?message_id=1", says: "There is nothing to do" },
  { path: "/ops/discrepancies/resolve?kind=paid_after_void", says: "There is nothing to do" },
] as const;

/** Where nobody listens. */
const nowhere = () => "postgres://inbox:pw-unheard-of@127.0.0.1:1/inbox";

let operator: Operator;
let visitor: Visitor;
beforeAll(async () => {
  operator = await anOperator();
  visitor = await aVisitor(operator);
});

test.each([...PAGES, ...ASKING])("$path says so where there is nothing", async ({ path, says }) => {
  const { status, headers, text } = await visitor.see(path);
  expect(status).toBe(200);
  expect(headers.get("content-type")).toBe("text/html; charset=utf-8");
  expect(headers.get("cache-control")).toBe("no-store");
  expect(text).toContain(says);
  expect(text).toMatch(/^<!DOCTYPE html>.*<\/html>$/s);
});

test.each([
  { path: "/ops/nothing", says: "There is no such page." },
  { path: "/ops/event", says: "There is no such event" },
  { path: "/ops/event?endpoint=billing&event_id=evt_1", says: "There is no such event" },
  { path: "/ops/discrepancies/resolve?id=1", says: "There is no such discrepancy" },
])("$path is not there: 404, on a page", async ({ path, says }) => {
  const { status, headers, text } = await visitor.see(path);
  expect(status).toBe(404);
  expect(headers.get("content-type")).toBe("text/html; charset=utf-8");
  expect(text).toContain(says);
});

test.each([...PAGES, ...ASKING, { path: "/ops/nothing?x=1" }])(
  "$path leads who is not logged in to the login, and from there back",
  async ({ path }) => {
    const said = await operator.ask(path);
    expect(said.status).toBe(303);
    const to = new URL(said.headers.get("location") ?? "", HERE);
    expect(to.pathname).toBe("/ops/login");
    const next = to.searchParams.get("next");
    expect(next).toBe(path === "/ops" ? null : path);
    const back = await logIn(operator, { next: next ?? "" });
    expect(back.headers.get("location")).toBe(path);
  },
);

test.each([
  "//evil.test",
  "https://evil.test/ops",
  "https:/ops",
  "javascript:alert(1)",
  "/ops/../x",
  "/ops/..//evil.test",
  "/ops/%2e%2e/x",
  "/ops/./events",
  "/ops\\..\\x",
  "\\\\evil.test",
  "/\\evil.test",
  "/\t/evil.test",
  " /ops/events",
  "/ops/events\r\nset-cookie: a=b",
  "/opsx",
  "/ops@evil.test",
  "ops/events",
  "/ops/login",
  "/ops/logout",
  "/ops/api/figures",
  "/webhooks/stripe/billing",
  `/ops/events?reason=${"x".repeat(4_000)}`,
])("a login does not lead to %j", async (next) => {
  const { status, headers } = await logIn(operator, { next });
  expect(status).toBe(303);
  expect(headers.get("location")).toBe("/ops");
  const form = await operator.ask(`/ops/login?${new URLSearchParams({ next }).toString()}`);
  expect(form.text).toContain('name="next" value="/ops"');
});

test("without a database each page is 503, and names no way to it", async () => {
  const cut = await anOperator({ route: nowhere });
  const { see, submit } = await aVisitor(cut);
  const events = { reason: UNUSABLE, count: "1", why: "mended" };
  const answers = [
    ...(await Promise.all(
      PAGES.filter(({ path }) => path !== "/ops/doctor").map(({ path }) => see(path)),
    )),
    await see("/ops/event?endpoint=billing&event_id=evt_1"),
    await see("/ops/event/payload?endpoint=billing&event_id=evt_1"),
    await see(`/ops/events/requeue?reason=${UNUSABLE}`),
    await submit("/ops/events/requeue", events),
  ];
  for (const { status, headers, text } of answers) {
    expect(status).toBe(503);
    expect(headers.get("content-type")).toBe("text/html; charset=utf-8");
    expect(text).toContain('role="alert"');
    expect(text).not.toMatch(/pw-unheard-of|postgres:\/\/|127\.0\.0\.1/);
  }
  const doctor = await see("/ops/doctor");
  expect(doctor.status).toBe(200);
  expect(doctor.text).toContain("Something is wrong");
  expect(doctor.text).not.toMatch(/pw-unheard-of|postgres:\/\//);
});

test("a database without our tables is told with what to do", async () => {
  const bare = await anOperator();
  const { see } = await aVisitor(bare);
  await query(
    bare.inbox.databaseUrl,
    "alter schema public rename to elsewhere; create schema public",
  );
  const { status, text } = await see("/ops/review");
  expect(status).toBe(503);
  expect(text).toContain("npm run db:migrate");
});

describe("a filter", () => {
  beforeAll(() => parked(operator, 3));

  test("is as if it were not there when it is empty", async () => {
    const { status, text } = await visitor.see(
      "/ops/events?state=&reason=&type=+&event_id=&object_id=&customer_id=&since=&until=&endpoint=&order=newest",
    );
    expect(status).toBe(200);
    expect(text).toContain("3 events, the newest first");
  });

  test("finds what it says, and stays in the form", async () => {
    const { text } = await visitor.see(
      `/ops/events?state=needs_review&reason=${UNUSABLE}&event_id=+evt_${UNUSABLE}2+&order=oldest&limit=7`,
    );
    expect(text).toContain("1 event, the oldest first");
    expect(text).toContain('<option value="needs_review" selected="">');
    expect(text).toContain(`name="event_id" value="evt_${UNUSABLE}2"`);
    expect(text).toContain('name="limit" value="7"');
  });

  test.each([
    { query: "since=yesterday", named: "since: must be a day", kept: 'value="yesterday"' },
    { query: "until=2026-02-31", named: "until: must be a day", kept: 'value="2026-02-31"' },
    { query: "state=odd", named: "state: must be", kept: '<option value="odd" selected="">' },
    { query: "limit=0", named: "limit: must be", kept: 'name="limit" value="0"' },
    { query: "reason=TypeError", named: "reason: needs a state", kept: 'value="TypeError"' },
    { query: "after=x&type=a.b", named: "after: must be", kept: 'value="a.b"' },
    { query: "odd=1&type=a.b", named: "odd: is not known", kept: 'value="a.b"' },
    {
      query: 'type=%00&object_id="%3E%3Cb%3E',
      named: "type: must be",
      kept: 'value="&quot;&gt;&lt;b&gt;"',
    },
  ])("$query is refused by name, and kept in the form", async ({ query: given, named, kept }) => {
    const { status, text } = await visitor.see(`/ops/events?${given}`);
    expect(status).toBe(400);
    expect(text).toContain(named);
    expect(text).toContain(kept);
    expect(text).not.toContain("the newest first");
  });

  test.each([
    { path: "/ops/events?type=a&type=b", named: "type: is given twice" },
    { path: "/ops/outbox?state=odd", named: "state: must be" },
    { path: "/ops/outbox?state=done&reason=x", named: "reason: is known of those" },
    { path: "/ops/discrepancies?open=maybe", named: "open: must be true or false" },
    { path: "/ops/gaps?after=x", named: "after: must be" },
    { path: "/ops/actions?order=odd", named: "order: must be" },
    { path: "/ops/events/requeue?reason=x&event_id=y", named: "Say which" },
    { path: "/ops/discrepancies/resolve?kind=odd", named: "kind: must be" },
  ])("$path is 400, and says why", async ({ path, named }) => {
    const { status, headers, text } = await visitor.see(path);
    expect(status).toBe(400);
    expect(headers.get("content-type")).toContain("text/html");
    expect(text).toContain(named);
  });
});

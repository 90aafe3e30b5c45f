/** Whatever an event, a person or a URL may hold, no page makes markup of it, or runs it. */
import { beforeAll, describe, expect, inject, test } from "vitest";
import type { Page } from "playwright-core";
import { anInvoiceEvent } from "../worker/testbed.ts";
import { useSite } from "./site.ts";

/** Each would leave its mark, in one way or another. */
const MARKS = [
  `<script>window.injected=1</script>`,
  `"><img src=x onerror=window.injected=1>`,
  `'><svg onload=window.injected=1>`,
  `</textarea></pre></title><b id=injected>`,
  `javascript:window.injected=1`,
  `{{7*7}}\${7*7}&lt;b&gt;`,
  `\u202eevil\u2066`,
] as const;
const ALL = MARKS.join(" ");
/** An id must be printable ASCII, without a blank. */
const ID = `evt_"><img/src=x/onerror=window.injected=1><script>window.injected=1</script>`;
const WAYWARD = ["..", ".", "a/b?c=d&e#f", "%2e%2e%2f", "evt_%00", "'\"<>"];

async function injectedIn(page: Page): Promise<unknown> {
  return page.evaluate(`({
    ran: globalThis.injected ?? null,
    marks: [...document.querySelectorAll("script, img, iframe, object, [id=injected], svg[onload]")]
      .map(({ outerHTML }) => outerHTML),
    handlers: [...document.querySelectorAll("*")]
      .flatMap(({ attributes }) => [...attributes].map(({ name }) => name))
      .filter((name) => name.startsWith("on") || name === "style"),
    links: [...document.querySelectorAll("a, form")]
      .map((one) => one.href ?? one.action)
      .filter((href) => !href.startsWith(location.origin + "/ops")),
  })`);
}

function query(fields: Record<string, string>): string {
  return new URLSearchParams(fields).toString();
}

describe.skipIf(inject("chromium") === null)("injection", () => {
  const site = useSite();

  beforeAll(async () => {
    const { inbox } = site();
    const invoice = (id: string, options = {}) =>
      anInvoiceEvent(
        "invoice.paid",
        { id, customer: `cus_${ALL}`, amountPaid: 100 },
        { id: `${ID}${inbox.databaseUrl.length}`, ...options },
      );
    const paid = invoice(`in_${ALL}`);
    const object = paid.data?.["object"];
    expect(object).toBeTypeOf("object");
    await inbox.deliver({
      ...paid,
      data: { object: { ...Object(object), metadata: { [ALL]: ALL }, customer_name: ALL } },
    });
    await inbox.deliver({ ...invoice("in_x"), id: `${ID}type`, type: ALL.slice(0, 255) });
    for (const id of WAYWARD) await inbox.deliver({ ...invoice("in_wayward"), id });
    await inbox.deliver({
      ...invoice(`in_parked${ALL}`),
      id: `${ID}parked`,
      data: { object: { id: `in_${ALL}`, object: "invoice", status: "paid", amount_paid: -1 } },
    });
    // What only a handler or another tool could write there.
    await inbox.rows(`update webhook_inbox set last_error = $1 where parked_at is not null`, [ALL]);
    await inbox.rows(
      `insert into discrepancies (kind, object_id, event_id, detail)
       values ('payment_mismatch', $1, $1, jsonb_build_object($1::text, $1::text))`,
      [ALL],
    );
    await inbox.rows(
      `insert into operator_actions (operator, via, action, subject, why, affected)
       values ($1, 'session', 'requeue_events', $1, $1, 1)`,
      [ALL],
    );
    await inbox.rows(
      `insert into sweep_gaps (endpoint, event_id, event_type, created_at, run_id)
       values ($1, $1, $1, now(), 1)`,
      [ALL],
    );
    await inbox.rows(
      `insert into outbox (aggregate_type, aggregate_id, event_type, payload, parked_at, last_error)
       values ('Invoice', $1, $1, '{}', now(), $1)`,
      [ALL],
    );
  });

  const everywhere = (): readonly string[] => {
    const { inbox } = site();
    return [
      "/ops",
      "/ops/events",
      "/ops/events?state=needs_review",
      `/ops/events?${query({ type: ALL, state: ALL, since: ALL })}`,
      `/ops/events?${query({ reason: ALL, state: "needs_review" })}`,
      `/ops/events?${query({ [ALL]: ALL })}`,
      `/ops/event?${query({ endpoint: "billing", event_id: `${ID}${inbox.databaseUrl.length}` })}`,
      `/ops/event?${query({ endpoint: "billing", event_id: `${ID}parked` })}`,
      `/ops/event?${query({ endpoint: ALL, event_id: ALL })}`,
      "/ops/review",
      "/ops/ignored",
      "/ops/discrepancies",
      "/ops/discrepancies/resolve?id=1",
      "/ops/outbox",
      "/ops/gaps",
      "/ops/actions",
      "/ops/actions?done=1",
      "/ops/doctor",
      `/ops/events/requeue?${query({ reason: ALL })}`,
      `/ops/events/requeue?${query({ event_id: `${ID}parked` })}`,
      `/ops/messages/requeue?${query({ reason: ALL })}`,
      `/ops/discrepancies/resolve?${query({ kind: ALL })}`,
      `/ops/${encodeURIComponent(ALL)}`,
      `/ops/login?${query({ next: ALL })}`,
    ];
  };

  test("no page makes markup of what an event, a person or a URL holds", async () => {
    const page = await site().logIn(ALL.slice(0, 100));
    const refused: string[] = [];
    page.on("console", (message) => {
      // A policy that has to refuse something says that markup came through.
      if (/Content.Security.Policy|Refused/i.test(message.text())) refused.push(message.text());
    });
    page.on("dialog", async (dialog) => {
      refused.push(dialog.message());
      await dialog.dismiss();
    });
    for (const path of everywhere()) {
      await page.goto(path);
      expect(await injectedIn(page), path).toEqual({
        ran: null,
        marks: [],
        handlers: [],
        links: [],
      });
      for (const summary of await page.locator("summary").all()) await summary.click();
      expect(await page.locator("main").innerText(), path).not.toBe("");
    }
    expect(refused).toEqual([]);
  });

  test("and it is there to be read, to the letter", async () => {
    const page = await site().logIn();
    await page.goto(everywhere()[6] ?? "");
    const text = await page.locator("main").innerText();
    for (const mark of MARKS.slice(0, 3)) expect(text).toContain(mark);
    await page.getByText("Show the payload").click();
    const payload = await page.getByRole("region", { name: "Payload" }).innerText();
    expect(payload).toContain(JSON.stringify(ALL));
    await page.goto("/ops/actions");
    expect(await page.locator("main").innerText()).toContain(MARKS[0]);
  });

  test("a policy would refuse any script that came through", async () => {
    const page = await site().logIn();
    const answer = await page.goto("/ops");
    expect(answer?.headers()["content-security-policy"]).toContain("default-src 'none'");
    const ran = page.evaluate(`new Promise((resolve) => {
      document.addEventListener("securitypolicyviolation", ({ effectiveDirective }) =>
        resolve(effectiveDirective));
      const script = document.createElement("script");
      script.textContent = "window.injected = 1";
      document.body.append(script);
      if (window.injected) resolve("it ran");
    })`);
    expect(await ran).toBe("script-src-elem");
  });

  test.each(WAYWARD)("a link leads to the event whose id is %s", async (id) => {
    const page = await site().logIn();
    await page.goto("/ops/events?object_id=in_wayward");
    await page.getByRole("link", { name: id, exact: true }).click();
    expect(await page.getByRole("definition").first().innerText()).toBe(id);
  });
});

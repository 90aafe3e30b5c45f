/** For whoever reads by ear, by keyboard, in the dark, or on a phone. */
import axe from "axe-core";
import { beforeAll, describe, expect, inject, test } from "vitest";
import type { Page } from "playwright-core";
import { anInvoiceEvent } from "../worker/testbed.ts";
import { useSite } from "./site.ts";

const DESK = { width: 1280, height: 900 };
const PHONE = { width: 360, height: 740 };

/** What a reader would stumble over: rule, and where. */
async function findings(page: Page): Promise<string[]> {
  await page.evaluate(axe.source);
  const { violations }: axe.AxeResults = await page.evaluate(
    `axe.run({ runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"] })`,
  );
  return violations
    .filter(({ impact }) => impact !== "minor")
    .flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html.slice(0, 200)}`));
}

describe.skipIf(inject("chromium") === null)("pages are for everybody", () => {
  const site = useSite();
  const unusable = anInvoiceEvent("invoice.paid", { amountPaid: -1 });
  const paid = anInvoiceEvent();
  const pages = [
    "/ops",
    "/ops/events",
    "/ops/events?since=nonsense",
    "/ops/events?state=waiting",
    `/ops/event?endpoint=billing&event_id=${unusable.id}`,
    `/ops/event?endpoint=billing&event_id=${paid.id}`,
    "/ops/event?endpoint=billing&event_id=evt_none",
    "/ops/review",
    "/ops/ignored",
    "/ops/discrepancies",
    "/ops/discrepancies?open=false",
    "/ops/discrepancies/resolve?id=1",
    "/ops/discrepancies/resolve?kind=void_after_paid",
    "/ops/outbox",
    "/ops/gaps",
    "/ops/actions?done=1",
    "/ops/doctor",
    `/ops/events/requeue?endpoint=billing&event_id=${unusable.id}`,
    "/ops/messages/requeue?reason=Unreadable",
    "/ops/nowhere",
    "/ops/login?next=/ops/events",
  ];

  beforeAll(async () => {
    const { inbox } = site();
    for (const event of [unusable, paid, anInvoiceEvent()]) await inbox.deliver(event);
    await inbox.deliver({ ...anInvoiceEvent(), type: "charge.succeeded" });
    const long = "W".repeat(255);
    await inbox.rows(
      `insert into webhook_inbox (endpoint, event_id, event_type, object_id, payload, attempts, parked_at, last_error)
       values ('billing', $1, $1, $1, '{}', 3, now(), $1)`,
      [long],
    );
    await inbox.rows(
      `insert into outbox (aggregate_type, aggregate_id, event_type, payload, parked_at, last_error)
       values ('Invoice', $1, 'InvoicePaymentBooked', '{}', now(), 'Unreadable')`,
      [long],
    );
    await inbox.rows(
      `insert into discrepancies (kind, object_id, event_id, detail, resolved_at, resolution)
       values ('void_after_paid', 'in_1', $1, '{"status": "paid"}', null, null),
         ('payment_mismatch', $1, 'evt_2', '{}', now(), $1)`,
      [long],
    );
    await inbox.rows(
      `insert into operator_actions (operator, via, action, subject, why, affected)
       values ('Ada', 'session', 'requeue_events', $1, $1, 7)`,
      [long],
    );
    await inbox.rows(
      `insert into sweep_gaps (endpoint, event_id, event_type, created_at, run_id)
       values ('billing', $1, $1, now(), 1)`,
      [long],
    );
  });

  test.each([
    { colorScheme: "light", viewport: DESK },
    { colorScheme: "dark", viewport: DESK },
    { colorScheme: "light", viewport: PHONE },
  ] as const)("axe finds nothing, in $colorScheme, $viewport.width wide", async (options) => {
    const page = await site().logIn("Ada", options);
    for (const path of pages) {
      await page.goto(path);
      for (const summary of await page.locator("summary").all()) await summary.click();
      expect(await findings(page), path).toEqual([]);
    }
  });

  test("on a phone, no page is wider than the screen", async () => {
    const page = await site().logIn("Ada", { viewport: PHONE });
    for (const path of pages) {
      await page.goto(path);
      expect(
        await page.evaluate("document.documentElement.scrollWidth - innerWidth"),
        path,
      ).toBeLessThanOrEqual(0);
    }
  });

  test("by keyboard alone, one skips to the content and requeues an event", async () => {
    const page = await site().logIn();
    await page.goto(`/ops/events/requeue?endpoint=billing&event_id=${unusable.id}`);
    const focused = () =>
      page.evaluate<string>(`document.activeElement.innerText
      || document.activeElement.name || document.activeElement.id`);
    await page.keyboard.press("Tab");
    expect(await focused()).toBe("Skip to the content");
    await page.keyboard.press("Enter");
    await page.keyboard.press("Tab");
    expect(await focused()).toBe("why");
    expect(await page.evaluate("getComputedStyle(document.activeElement).outlineStyle")).toBe(
      "solid",
    );
    await page.keyboard.type("mended");
    await page.keyboard.press("Tab");
    expect(await focused()).toBe("Requeue 1 event");
    await page.keyboard.press("Enter");
    await page.waitForURL(/done=/);
    expect(await page.getByRole("status").innerText()).toContain("1 event was requeued");
  });
});

/** What an operator reads, and how one finds it. */
import { beforeAll, describe, expect, inject, test } from "vitest";
import { anInvoiceEvent } from "../worker/testbed.ts";
import { rowsOf, textOf, useSite } from "./site.ts";

describe.skipIf(inject("chromium") === null)("an operator reads", () => {
  const site = useSite();
  const paid = anInvoiceEvent("invoice.paid", {
    id: "in_reader",
    customer: "cus_reader",
    amountPaid: 4200,
  });
  const invoice = "in_reader";
  const unusable = anInvoiceEvent("invoice.paid", { amountPaid: -1 });
  const unknown = { ...anInvoiceEvent(), type: "charge.succeeded" };

  test("an inbox that has no data yet, in words", async () => {
    const page = await site().logIn();
    expect(await textOf(page)).toContain("No event came in within the last hour");
    expect(await textOf(page)).toContain("No data yet");
    for (const [path, words] of [
      ["/ops/events", "No event is like that."],
      ["/ops/review", "No event needs review."],
      ["/ops/ignored", "No event was ignored whose payload is there."],
      ["/ops/discrepancies", "No discrepancy is open."],
      ["/ops/outbox", "There is no such message."],
      ["/ops/gaps", "No sweep has found anything missing."],
      ["/ops/actions", "Nobody has done anything yet."],
    ] as const) {
      await page.goto(path);
      expect(await textOf(page), path).toContain(words);
    }
  });

  describe("with events", () => {
    beforeAll(async () => {
      const { inbox } = site();
      for (const event of [paid, unusable, unknown]) await inbox.deliver(event);
      await inbox.rows(
        `insert into webhook_inbox (endpoint, event_id, event_type, object_id, payload, attempts,
           processed_at, outcome, received_at)
         select 'billing', 'evt_old' || lpad(n::text, 3, '0'), 'invoice.updated', 'in_old', '{}', 1,
           now() - interval '2 days', 'processed', now() - interval '2 days' - n * interval '1 s'
         from generate_series(1, 120) n`,
      );
    });

    test("the overview: each figure with how it stands, in words, the worst first", async () => {
      const page = await site().logIn();
      const cards = await page.locator(".card").allInnerTexts();
      expect(cards[0]).toMatch(/Trouble/);
      expect(cards.join("\n")).toMatch(/Needs review\s+▲ Trouble\s+1/);
      expect(cards.join("\n")).toMatch(/To do:/);
      expect(await textOf(page)).toContain("Somebody is needed:");
      const types = await rowsOf(page, /Received \/ processed \/ ignored/);
      expect(types).toContainEqual([
        "invoice.paid",
        "billing",
        "2 / 1 / 0",
        "0 / 0 / 0",
        expect.stringMatching(/s$/),
        expect.stringMatching(/s$/),
      ]);
      const chart = page.getByRole("figure", { name: "" }).first();
      expect(await chart.locator("svg .bar").count()).toBeGreaterThan(59);
      await chart.getByText("The same as a table").click();
      const minutes = await rowsOf(page, /The last hour, by minute/);
      expect(minutes.length).toBe(60);
      expect(minutes.map(([, received]) => Number(received)).reduce((a, b) => a + b)).toBe(3);
    });

    test("each page by its name at the top, which says where one is", async () => {
      const page = await site().logIn();
      for (const name of [
        "Events",
        "Needs review",
        "Ignored",
        "Discrepancies",
        "Outbox",
        "Missed",
        "Actions",
        "Doctor",
        "Overview",
      ]) {
        await page.getByRole("navigation").getByRole("link", { name, exact: true }).click();
        expect(await page.getByRole("heading", { level: 1 }).innerText()).toBe(name);
        expect(await page.locator('nav [aria-current="page"]').innerText()).toBe(name);
        expect(await page.title()).toBe(`${name} · stripe-inbox`);
      }
    });

    test("events by a filter that stays in the URL and in the form", async () => {
      const page = await site().logIn();
      await page.goto("/ops/events");
      await page.getByRole("combobox", { name: "State" }).selectOption("needs_review");
      await page.getByRole("button", { name: "Find" }).click();
      expect(new URL(page.url()).searchParams.get("state")).toBe("needs_review");
      expect(await page.getByRole("combobox", { name: "State" }).inputValue()).toBe("needs_review");
      expect((await rowsOf(page, /1 event/)).map((row) => row[1])).toEqual([unusable.id]);

      await page.goto("/ops/events");
      await page.getByLabel("Customer").fill("cus_reader");
      await page.getByRole("button", { name: "Find" }).click();
      expect((await rowsOf(page, /event/)).map((row) => row[1])).toEqual([paid.id]);
      await page.getByRole("link", { name: "All events" }).click();
      expect((await rowsOf(page, /50 events/)).length).toBe(50);
    });

    test("what is wrong with a filter, beside what was typed", async () => {
      const page = await site().logIn();
      await page.goto("/ops/events");
      await page.getByLabel("Received since (UTC)").fill("yesterday");
      await page.getByRole("button", { name: "Find" }).click();
      expect(await page.getByRole("alert").innerText()).toMatch(/^since: must be a day or a time/);
      expect(await page.getByLabel("Received since (UTC)").inputValue()).toBe("yesterday");
    });

    test("page after page, each event once", async () => {
      const page = await site().logIn();
      await page.goto("/ops/events?type=invoice.updated&order=oldest");
      const seen: string[] = [];
      for (let pages = 1; ; pages++) {
        seen.push(...(await rowsOf(page, /events/)).map((row) => row[1] ?? ""));
        const next = page.getByRole("link", { name: "Next page" });
        if ((await next.count()) === 0 || pages > 5) break;
        await next.click();
      }
      expect(seen.length).toBe(120);
      expect(new Set(seen).size).toBe(120);
      await page.getByRole("link", { name: "To the first page" }).click();
      expect((await rowsOf(page, /events/))[0]?.[1]).toBe(seen[0]);
    });

    test("one event with everything that came of it", async () => {
      const page = await site().logIn();
      await page.goto("/ops/events?type=invoice.paid");
      await page.getByRole("link", { name: paid.id }).click();
      const text = await textOf(page);
      for (const fact of [paid.id, invoice, "processed", "cus_reader", "4,200 eur"]) {
        expect(text).toContain(fact);
      }
      expect(await rowsOf(page, /Ledger/)).toEqual([["payment", "4,200 eur", paid.id]]);
      expect(await rowsOf(page, /Messages, and the calls/)).toHaveLength(1);
      expect(text).not.toContain('"amount_paid": 4200');
      await page.getByText("Show the payload").click();
      expect(await textOf(page)).toContain('"amount_paid": 4200');
      // Its times are in UTC, with their age.
      expect(text).toMatch(/Received\s+20\d\d-\d\d-\d\d \d\d:\d\d:\d\d UTC \(\d+ s ago\)/);
      await page.getByRole("link", { name: "cus_reader" }).click();
      expect((await rowsOf(page, /event/)).map((row) => row[1])).toEqual([paid.id]);
    });

    test("what it means that an event needs review, or was ignored", async () => {
      const page = await site().logIn();
      await page.goto("/ops/review");
      expect((await rowsOf(page, /need review, by reason/))[0]?.slice(0, 2)).toEqual([
        expect.stringContaining("PermanentError:amount_paid_unusable\nThe handler says"),
        "1",
      ]);
      await page.getByRole("link", { name: "See them" }).click();
      await page.getByRole("link", { name: unusable.id }).click();
      expect(await textOf(page)).toContain("The handler says that it can never work as it is");
      await page.goto("/ops/ignored");
      expect(await textOf(page)).toContain("No handler for the type at its endpoint.");
    });

    test("a payload to the letter, as a file", async () => {
      const page = await site().logIn();
      await page.goto(`/ops/event?endpoint=billing&event_id=${paid.id}`);
      const download = page.waitForEvent("download");
      await page.getByRole("link", { name: "Download it whole" }).click();
      expect((await download).suggestedFilename()).toBe("event.json");
    });

    test("that a payload was purged, and that there is no such event", async () => {
      const { inbox, logIn } = site();
      await inbox.rows(`update webhook_inbox set payload = null where event_id = 'evt_old001'`);
      const page = await logIn();
      await page.goto("/ops/event?endpoint=billing&event_id=evt_old001");
      expect(await textOf(page)).toContain("It was purged");
      const answer = await page.goto("/ops/event?endpoint=billing&event_id=evt_never");
      expect(answer?.status()).toBe(404);
      expect(await textOf(page)).toContain("has no event evt_never");
    });
  });
});

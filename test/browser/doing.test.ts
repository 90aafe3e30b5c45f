/** What an operator does on the pages: asked first, with the count, and on record. */
import { Client } from "pg";
import { beforeEach, describe, expect, inject, onTestFinished, test } from "vitest";
import type { Page } from "playwright-core";
import { anInvoiceEvent } from "../worker/testbed.ts";
import { rowsOf, textOf, useSite } from "./site.ts";

const REASON = "PermanentError:amount_paid_unusable";

const say = async (page: Page, label: string, words: string, button: string): Promise<void> => {
  await page.getByLabel(label).fill(words);
  await page.getByRole("button", { name: button, exact: true }).click();
};

describe.skipIf(inject("chromium") === null)("an operator", () => {
  const site = useSite();

  beforeEach(async () => {
    await site().inbox.rows(
      `truncate webhook_inbox, invoices, ledger_entries, outbox, call_journal, discrepancies,
         operator_actions restart identity`,
    );
  });

  const states = () =>
    site().inbox.rows(
      `select last_error, parked_at is not null as parked, processed_at is not null as settled,
         count(*)::int from webhook_inbox group by 1, 2, 3 order by 4`,
    );
  const actions = () =>
    site().inbox.rows(
      "select operator, via, action, subject, why, affected from operator_actions order by id",
    );
  const park = (count: number, reason = REASON) =>
    site().inbox.rows(
      `insert into webhook_inbox (endpoint, event_id, event_type, payload, attempts, parked_at,
         last_error, received_at)
       select 'billing', 'evt_' || $2 || n, 'invoice.paid', '{}', 3, now(), $2,
         now() - n * interval '1 s' from generate_series(1, $1::int) n`,
      [count, reason],
    );

  test("requeues one event, and is told so where it is", async () => {
    const { inbox, logIn } = site();
    const event = anInvoiceEvent("invoice.paid", { amountPaid: -1 });
    await inbox.deliver(event);
    const page = await logIn("Ada Lovelace");
    await page.goto("/ops/events?state=needs_review");
    await page.getByRole("link", { name: event.id }).click();
    await page.getByRole("link", { name: "Requeue this event…" }).click();
    expect(await textOf(page)).toContain("1 event.");
    await say(page, "Why?", "the amount is read anew", "Requeue 1 event");

    expect(await page.getByRole("heading", { level: 1 }).innerText()).toBe("invoice.paid");
    expect(await page.getByRole("status").innerText()).toContain(
      "1 event was requeued, due at once. Done by you",
    );
    expect(await textOf(page)).toContain("waiting");
    expect(await rowsOf(page, "Actions")).toHaveLength(1);
    const subject = `event ${event.id} at billing`;
    expect(await actions()).toEqual([
      {
        operator: "Ada Lovelace",
        via: "session",
        action: "requeue_events",
        subject,
        why: "the amount is read anew",
        affected: 1,
      },
    ]);
    // Reloaded, nothing more is done.
    await page.reload();
    expect(await actions()).toHaveLength(1);
  });

  test("requeues all of one reason, and no others", async () => {
    await park(42);
    await park(3, "TypeError");
    const page = await site().logIn();
    await page.goto("/ops/review");
    await page
      .getByRole("row", { name: REASON })
      .getByRole("link", { name: "requeue all…" })
      .click();
    expect(await textOf(page)).toContain("42 events.");
    await say(page, "Why?", "mended in 1a2b3c", "Requeue 42 events");
    expect(await page.getByRole("status").innerText()).toContain("42 events were requeued");
    expect(await rowsOf(page, /need review, by reason/)).toHaveLength(1);
    expect(await states()).toEqual([
      { last_error: "TypeError", parked: true, settled: false, count: 3 },
      { last_error: null, parked: false, settled: false, count: 42 },
    ]);
    await page.goto("/ops/actions");
    expect((await rowsOf(page, "The newest first"))[0]?.slice(1)).toEqual([
      "Ada, by these pages",
      `requeue events: events parked with ${REASON}`,
      "42",
      "mended in 1a2b3c",
    ]);
  });

  test("does no more than was seen: what was parked meanwhile stays", async () => {
    await park(3);
    const page = await site().logIn();
    await page.goto(`/ops/events/requeue?reason=${REASON}`);
    // Of those that were seen, one is gone; others have come.
    await site().inbox.rows("delete from webhook_inbox where event_id like '%1'");
    await site().inbox.rows(
      `insert into webhook_inbox (endpoint, event_id, event_type, payload, attempts, parked_at, last_error, received_at)
       select 'billing', 'evt_later' || n, 'invoice.paid', '{}', 3, now(), $1, now() - n * interval '1 hour'
       from generate_series(0, 5) n`,
      [REASON],
    );
    await say(page, "Why?", "mended", "Requeue 3 events");
    expect(await page.getByRole("status").innerText()).toContain("2 events were requeued");
    expect(
      await site().inbox.rows(
        `select count(*)::int as left from webhook_inbox where parked_at is not null
           and event_id like 'evt_later%'`,
      ),
    ).toEqual([{ left: 6 }]);
  });

  test("sent again from another tab, it takes nothing more, and is told what it did", async () => {
    await park(20_050);
    const page = await site().logIn();
    const again = await page.context().newPage();
    for (const one of [page, again]) await one.goto(`/ops/events/requeue?reason=${REASON}`);
    for (const one of [page, again]) {
      await say(one, "Why?", "mended", "Requeue 20,000 events");
      await one.waitForURL(/done=/);
      expect(await one.getByRole("status").innerText()).toContain("20,000 events were requeued");
    }
    expect(await rowsOf(again, /need review, by reason/)).toEqual([
      [expect.stringContaining(REASON), "50", expect.anything(), expect.anything()],
    ]);
    expect((await actions()).map(({ affected }) => affected)).toEqual([5000, 5000, 5000, 5000]);
  });

  test("pressing a button twice is told what the first time did", async () => {
    await park(2);
    const page = await site().logIn();
    await page.goto(`/ops/events/requeue?reason=${REASON}`);
    await page.getByLabel("Why?").fill("mended");
    await page.getByRole("button", { name: "Requeue 2 events" }).dblclick();
    await page.waitForURL(/done=/);
    expect(await page.getByRole("status").innerText()).toContain("2 events were requeued");
    expect(await actions()).toHaveLength(1);
  });

  test("is told when somebody else was faster, and nothing of what others did as one's own", async () => {
    await park(2);
    const { logIn } = site();
    const [page, other] = [await logIn("Ada"), await logIn("Grace")];
    for (const one of [page, other]) await one.goto(`/ops/events/requeue?reason=${REASON}`);
    await say(page, "Why?", "mended", "Requeue 2 events");
    await say(other, "Why?", "mended", "Requeue 2 events");
    expect(await textOf(other)).toContain("Nothing was changed.");
    expect(await actions()).toHaveLength(1);
    await other.goto(page.url());
    expect(await textOf(other)).not.toContain("Done by you");
  });

  test("whose second batch fails is told of the first, and by how much", async () => {
    await park(6_000);
    const { inbox, logIn } = site();
    const page = await logIn();
    await page.goto(`/ops/events/requeue?reason=${REASON}`);
    const holder = new Client({ connectionString: inbox.databaseUrl });
    await holder.connect();
    onTestFinished(() => holder.end());
    await holder.query(
      `begin; select from webhook_inbox where event_id = 'evt_${REASON}10' for update`,
    );
    await say(page, "Why?", "mended", "Requeue 6,000 events");
    const told = await page.getByRole("status").innerText();
    expect(told).toContain("5,000 events were requeued");
    expect(told).toContain("You agreed to 6,000");
    expect((await actions()).map(({ affected }) => affected)).toEqual([5000]);
    await holder.query("rollback");
  });

  test("has to say why, and keeps what was typed", async () => {
    await park(1);
    const page = await site().logIn();
    await page.goto(`/ops/events/requeue?reason=${REASON}`);
    await say(page, "Why?", "   ", "Requeue 1 event");
    expect(await page.getByRole("alert").innerText()).toContain("why: must say why");
    expect(await actions()).toEqual([]);
    await say(page, "Why?", "mended", "Requeue 1 event");
    expect(await actions()).toHaveLength(1);
  });

  test("writes a note of several lines, as long as its box takes", async () => {
    await park(1);
    const page = await site().logIn();
    await page.goto(`/ops/events/requeue?reason=${REASON}`);
    await say(page, "Why?", "a line\n".repeat(71), "Requeue 1 event");
    expect((await actions())[0]?.["why"]).toBe("a line\n".repeat(71).trim());
  });

  test("requeues what was ignored for a reason", async () => {
    const { inbox, logIn } = site();
    for (const _ of [1, 2]) await inbox.deliver(anInvoiceEvent("invoice.paid", { livemode: true }));
    const page = await logIn();
    await inbox.rows("update webhook_inbox set ignored_reason = 'livemode', outcome = 'ignored'");
    await page.goto("/ops/ignored");
    await page.getByRole("link", { name: "requeue all…" }).click();
    await say(page, "Why?", "STRIPE_LIVEMODE was wrong", "Requeue 2 events");
    expect(await textOf(page)).toContain("No event was ignored whose payload is there.");
  });

  test("sends a message again, and all of a reason", async () => {
    const { inbox, logIn } = site();
    for (const _ of [1, 2, 3]) await inbox.deliver(anInvoiceEvent());
    await inbox.rows("update outbox set parked_at = now(), last_error = 'Unreadable'");
    const page = await logIn();
    await page.goto("/ops/outbox");
    await page.getByRole("link", { name: "Send it again…" }).first().click();
    await say(page, "Why?", "deployed", "Send 1 message again");
    expect(await page.getByRole("status").innerText()).toContain("1 message leaves again");
    await page.getByRole("link", { name: "send all again…" }).click();
    expect(await textOf(page)).toContain("2 messages.");
    await say(page, "Why?", "deployed", "Send 2 messages again");
    expect(await inbox.rows("select count(*)::int from outbox where parked_at is null")).toEqual([
      { count: 3 },
    ]);
  });

  const stillOpen = () =>
    site().inbox.rows(
      "select object_id, resolution from discrepancies where resolved_at is null order by id",
    );

  describe("with discrepancies", () => {
    beforeEach(async () => {
      await site().inbox.rows(
        `insert into discrepancies (kind, object_id, event_id, detail)
         select 'void_after_paid', 'in_' || n, 'evt_' || n, '{"status": "paid"}'
         from generate_series(1, 5) n`,
      );
    });
    test("resolves one with a note", async () => {
      const page = await site().logIn();
      await page.goto("/ops/discrepancies");
      await page
        .getByRole("row", { name: "in_3", exact: false })
        .getByRole("link", { name: "Resolve…" })
        .click();
      expect(await textOf(page)).toContain("An invoice that is paid here was made void.");
      await say(page, "How was it settled?", "refunded by hand", "Resolve it");
      expect(await page.getByRole("status").innerText()).toContain("1 discrepancy is resolved");
      expect((await stillOpen()).map((row) => row["object_id"])).toEqual([
        "in_1",
        "in_2",
        "in_4",
        "in_5",
      ]);
      await page.getByRole("link", { name: "Resolved", exact: true }).click();
      expect((await rowsOf(page, /1 discrepanc/))[0]?.[4]).toContain("refunded by hand");
    });

    test("is told when it was found again meanwhile, and looks at it anew", async () => {
      const page = await site().logIn();
      await page.goto("/ops/discrepancies/resolve?id=2");
      await site().inbox.rows(
        "update discrepancies set found_at = now() + interval '1 s' where id = 2",
      );
      await say(page, "How was it settled?", "refunded by hand", "Resolve it");
      expect(await page.getByRole("alert").innerText()).toContain("It was found again");
      expect(await page.getByLabel("How was it settled?").inputValue()).toBe("refunded by hand");
      expect(await stillOpen()).toHaveLength(5);
      await page.getByRole("button", { name: "Resolve it" }).click();
      expect(await stillOpen()).toHaveLength(4);
    });

    test("resolves all of a kind with one note, but none that is found later", async () => {
      const page = await site().logIn();
      await page.goto("/ops/discrepancies");
      await page.getByRole("link", { name: "resolve all…" }).click();
      expect(await textOf(page)).toContain("5 discrepancies.");
      await site().inbox.rows(
        `insert into discrepancies (kind, object_id, detail)
         values ('void_after_paid', 'in_later', '{}'), ('status_differs', 'in_other', '{}')`,
      );
      await say(page, "How was it settled?", "all refunded", "Resolve 5 discrepancies");
      expect(await page.getByRole("status").innerText()).toContain("5 discrepancies are resolved");
      expect((await stillOpen()).map((row) => row["object_id"])).toEqual(["in_later", "in_other"]);
      expect((await actions()).map(({ subject, affected }) => [subject, affected])).toEqual([
        ["discrepancies of kind void_after_paid", 5],
      ]);
    });
  });
});

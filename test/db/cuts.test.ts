/** Cut at any message of the conversation, a delivery comes to the same books by being repeated. */
import { sql } from "drizzle-orm";
import { expect, inject, test } from "vitest";
import type { Write } from "../../src/db/connect.ts";
import { type Fate, type Message, startProxy } from "../local/proxy.ts";
import { billing, book, deliverUntil } from "../worker/disturbances.ts";
import { anInvoiceEvent, openTestbed } from "../worker/testbed.ts";

interface Cut {
  readonly from: Message["from"];
  readonly n: number;
  readonly fate: Fate;
}

/** Unlike the booking, this has no key of its own that would stop a second one. */
function effectOf({ data }: Parameters<typeof book>[0]): Write {
  return sql`insert into outbox (aggregate_type, aggregate_id, event_type, payload)
    values ('Invoice', ${data.object.id}, 'Effect', '{}')`;
}

test.each([
  ["a new event", "on", false],
  ["a new event, with PIPELINE=off", "off", false],
  ["an event whose first attempt fails", "on", true],
])("%s", { timeout: 120_000 }, async (_, PIPELINE, fails) => {
  const passed: Message[] = [];
  const planned: { cut: Cut | null } = { cut: null };
  await using proxy = await startProxy(inject("postgresUrl"), {
    fate: (message) => {
      passed.push(message);
      const { cut } = planned;
      if (cut?.from !== message.from || cut.n !== message.n) return "pass";
      planned.cut = null;
      return cut.fate;
    },
  });
  const failing = new Set<string>();
  const endpoints = billing({
    "invoice.paid": (event, tx) => {
      if (failing.has(event.id)) throw new Error("It fails at first.");
      return [...book(event, tx), effectOf(event)];
    },
  });
  const inbox = await openTestbed({ endpoints, env: { PIPELINE }, route: proxy.route });
  const deliver = async (event: ReturnType<typeof anInvoiceEvent>): Promise<void> => {
    if (fails) {
      failing.add(event.id);
      await deliverUntil(inbox, event, 500);
      failing.delete(event.id);
    }
    await deliverUntil(inbox, event, 200);
  };
  const booksOf = async ({ data }: ReturnType<typeof anInvoiceEvent>): Promise<unknown> => {
    const [books] = await inbox.rows(
      `select invoices.status, amount_paid, invoices.customer_id, invoices.currency,
        (select count(*)::int from ledger_entries where invoice_id = invoices.id) as entries,
        (select count(*)::int from outbox where aggregate_id = invoices.id) as messages,
        (select jsonb_agg(outcome) from webhook_inbox where object_id = invoices.id) as outcomes,
        (select jsonb_agg(last_error) from webhook_inbox where object_id = invoices.id) as errors
        from invoices where invoices.id = $1`,
      [data?.object["id"]],
    );
    return books;
  };

  const undisturbed = anInvoiceEvent();
  await deliver(undisturbed);
  const expected = await booksOf(undisturbed);
  expect(expected).toMatchObject({ status: "paid", entries: 1, messages: 2 });

  const boundaries = passed
    .filter(({ connection }) => connection === 1)
    .flatMap(({ from, n }) =>
      (["cut before", "cut after"] as const).map((fate) => ({ from, n, fate })),
    );
  expect(boundaries.length).toBeGreaterThan(100);
  for (const cut of boundaries) {
    const event = anInvoiceEvent();
    planned.cut = cut;
    await deliver(event);
    expect(planned.cut, `${JSON.stringify(cut)} was reached`).toBeNull();
    expect(await booksOf(event), JSON.stringify(cut)).toEqual(expected);
  }
});

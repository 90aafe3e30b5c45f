/** With PIPELINE off, statements go one by one; every answer, row and log line is the same. */
import { expect, test } from "vitest";
import { invoiceHandlers } from "../../src/billing/handlers.ts";
import { PermanentError } from "../../src/inbox/retry.ts";
import type { Endpoints } from "../../src/endpoints.ts";
import { anInvoiceEvent, logLines, openTestbed } from "./testbed.ts";

/** What comes of one delivery of each kind: answers, rows and log lines, without times and ids. */
async function story(pipeline: "on" | "off"): Promise<Record<string, unknown>> {
  let refusals = 1;
  const endpoints: Endpoints = {
    billing: {
      secrets: "STRIPE_WEBHOOK_SECRET",
      accounts: "own",
      handlers: {
        ...invoiceHandlers,
        "invoice.created": () => {
          throw new PermanentError("never");
        },
        "invoice.voided": (event, tx) => {
          if (refusals-- > 0) throw new RangeError("Not this time.");
          return invoiceHandlers["invoice.voided"](event, tx);
        },
      },
    },
  };
  const inbox = await openTestbed({ endpoints, env: { PIPELINE: pipeline } });
  const booked = anInvoiceEvent();
  const ignored = { ...anInvoiceEvent(), type: "totally.new_event" };
  const failing = anInvoiceEvent("invoice.voided", { status: "void" });
  const parked = anInvoiceEvent("invoice.created", { status: "draft" });

  const answers: unknown[] = [];
  const lines = await logLines(async () => {
    for (const event of [booked, booked, ignored, ignored, failing, failing, parked, parked]) {
      const { status, outcome, event: id } = await inbox.deliver(event);
      answers.push({ status, outcome, known: id === event.id });
    }
  });
  const rows = await inbox.rows(`select event_type, outcome, ignored_reason, attempts, last_error,
    fence, duplicates, parked_at is not null as parked from webhook_inbox order by received_at`);
  const said = lines.map(({ ms: _ms, event: _event, ...line }) => line);
  return { answers, rows, lines: said, books: await inbox.books() };
}

test("new, duplicate, ignored, failed and parked events end alike", async () => {
  const off = await story("off");
  expect(off["answers"]).toEqual([
    { status: 200, outcome: "processed", known: true },
    { status: 200, outcome: "duplicate", known: true },
    { status: 200, outcome: "ignored", known: true },
    { status: 200, outcome: "duplicate", known: true },
    { status: 500, outcome: "failed", known: true },
    { status: 200, outcome: "processed", known: true },
    { status: 200, outcome: "needs_review", known: true },
    { status: 200, outcome: "needs_review", known: true },
  ]);
  expect(off["books"]).toMatchObject({ inbox: 4, invoices: 2, entries: 1, messages: 1 });
  expect(off).toEqual(await story("on"));
});

import { expect, test } from "vitest";
import { anInvoiceEvent, openTestbed } from "./testbed.ts";

test("a paid invoice is booked once, with its message; a redelivery changes nothing", async () => {
  const inbox = await openTestbed();
  const event = anInvoiceEvent();

  expect(await inbox.deliver(event)).toMatchObject({
    status: 200,
    outcome: "processed",
    event: event.id,
  });
  expect(await inbox.deliver(event)).toMatchObject({
    status: 200,
    outcome: "duplicate",
    event: event.id,
  });
  expect(await inbox.books()).toEqual({
    inbox: 1,
    invoices: 1,
    entries: 1,
    messages: 1,
    discrepancies: 0,
  });
  expect(await inbox.rows("select outcome, attempts, duplicates from webhook_inbox")).toEqual([
    { outcome: "processed", attempts: 1, duplicates: 1 },
  ]);
});

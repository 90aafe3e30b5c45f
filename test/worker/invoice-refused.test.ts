/** An invoice that contradicts its event, or cannot be read, waits for a person: 200, no change. */
import { expect, test } from "vitest";
import { booksOf, recordOf, withFields, withRawField } from "./invoices.ts";
import { anInvoiceEvent, openTestbed } from "./testbed.ts";

test.each(["draft", "open", "uncollectible", "void"] as const)(
  "invoice.paid about an invoice that is %s waits for a person, and nothing is booked",
  async (status) => {
    const inbox = await openTestbed();
    const event = anInvoiceEvent("invoice.paid", { status });
    expect(await inbox.deliver(event)).toMatchObject({ status: 200, outcome: "needs_review" });
    expect(await inbox.books()).toMatchObject({ inbox: 1, invoices: 0, entries: 0, messages: 0 });
    expect(await recordOf(inbox, event.id)).toEqual({
      outcome: null,
      parked: true,
      last_error: "PermanentError:paid_event_of_unpaid_invoice",
    });
  },
);

test.each(["invoice.created", "invoice.updated", "invoice.paid", "invoice.voided"] as const)(
  "a status in %s that Stripe has never named waits for a person: 200, nothing changed",
  async (type) => {
    const inbox = await openTestbed();
    const odd = ["refunded", "", "PAID", "paid ", 4, true, {}, ["paid"]];
    for (const status of odd) {
      const event = withFields(anInvoiceEvent(type), { status });
      for (const attempt of ["first", "redelivery"]) {
        expect(await inbox.deliver(event), attempt).toMatchObject({
          status: 200,
          outcome: "needs_review",
        });
      }
      expect(await recordOf(inbox, event.id)).toEqual({
        outcome: null,
        parked: true,
        last_error: "PermanentError:invoice_status_unknown",
      });
    }
    expect(await inbox.books()).toMatchObject({ inbox: odd.length, invoices: 0, entries: 0 });
  },
);

test.each(["invoice.created", "invoice.paid", "invoice.voided"] as const)(
  "an invoice in %s whose id is no text of 1 to 255 characters waits for a person",
  async (type) => {
    const inbox = await openTestbed();
    const odd = [undefined, null, "", "i".repeat(256), 42, true, {}, ["in_1"]];
    for (const id of odd) {
      const event = withFields(anInvoiceEvent(type), { id });
      expect(await inbox.deliver(event)).toMatchObject({ status: 200, outcome: "needs_review" });
      expect(await recordOf(inbox, event.id)).toMatchObject({
        last_error: "PermanentError:invoice_id_unusable",
      });
    }
    expect(await inbox.books()).toMatchObject({ inbox: odd.length, invoices: 0, entries: 0 });
  },
);

test.each([
  ["of one character", "i"],
  ["of 255 characters", "i".repeat(255)],
  ["with quotes and a semicolon", `in_'";--`],
])("an invoice id %s is taken as it is", async (_, id) => {
  const inbox = await openTestbed();
  expect(await inbox.deliver(anInvoiceEvent("invoice.paid", { id }))).toMatchObject({
    outcome: "processed",
  });
  expect(await booksOf(inbox, id)).toMatchObject({
    entries: [{ amount: 4200 }],
    messages: [{ invoice_id: id }],
  });
});

test("an invoice id with a null character is booked under the id that can be stored", async () => {
  const inbox = await openTestbed();
  const body = withRawField(anInvoiceEvent("invoice.paid"), "id", '"in_\\u0000x"');
  expect(await inbox.deliver(body)).toMatchObject({ status: 200, outcome: "processed" });
  expect(await inbox.rows("select payload_altered from webhook_inbox")).toEqual([
    { payload_altered: true },
  ]);
  expect((await booksOf(inbox, "in_\uFFFDx")).entries).toMatchObject([{ amount: 4200 }]);
});

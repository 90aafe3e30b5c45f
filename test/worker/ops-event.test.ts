/** One event, with everything that is known of it. */
import { describe, expect, test } from "vitest";
import { anOperator } from "./operator.ts";
import { anInvoiceEvent, freshId } from "./testbed.ts";

describe("one event", () => {
  test("is told with its invoice, what it booked, sent and contradicted, and its payload to the letter", async () => {
    const { inbox, get } = await anOperator();
    const invoice = { id: freshId("in"), customer: "cus_one" };
    const paid = anInvoiceEvent("invoice.paid", invoice);
    const body = JSON.stringify(paid).replace('"total":4200', '"total":4200.0000000000000000001');
    expect(body).not.toBe(JSON.stringify(paid));
    await inbox.deliver(body);
    await inbox.deliver(anInvoiceEvent("invoice.voided", { ...invoice, status: "void" }));
    const said = await get(`/ops/api/events/billing/${paid.id}`);
    expect(said.status).toBe(200);
    expect(said.text).toContain("4200.0000000000000000001");
    const { trace, payload, ...known } = said.body;
    expect(payload).toMatchObject({ id: paid.id, type: "invoice.paid" });
    expect(known).toEqual({
      event: expect.objectContaining({
        event_id: paid.id,
        state: "processed",
        object_id: invoice.id,
        payload_altered: false,
        fence: 0,
      }),
      swept_at: null,
      actions: [],
    });
    expect(trace.invoice).toMatchObject({
      id: invoice.id,
      status: "paid",
      amount_paid: 4200,
      currency: "eur",
      customer_id: "cus_one",
    });
    expect(trace.ledger_entries).toEqual([
      {
        id: expect.any(Number),
        kind: "payment",
        amount: 4200,
        currency: "eur",
        event_id: paid.id,
      },
    ]);
    expect(trace.messages).toEqual([
      expect.objectContaining({ type: "InvoicePaymentBooked", event_id: paid.id, calls: [] }),
    ]);
    expect(trace.discrepancies).toEqual([
      expect.objectContaining({ kind: "void_after_paid", resolved_at: null }),
    ]);
  });

  test("has no payload any more once that is purged", async () => {
    const { inbox, get } = await anOperator();
    const event = anInvoiceEvent();
    await inbox.deliver(event);
    await inbox.rows("update webhook_inbox set payload = null");
    const { body } = await get(`/ops/api/events/billing/${event.id}`);
    expect(body.payload).toBe(null);
    expect(body.event.state).toBe("processed");
  });

  test("can have any id that an event may have", async () => {
    const { inbox, get } = await anOperator();
    for (const id of [
      "evt_a/b?c=d&e#f",
      "evt_%2F",
      "evt_..",
      "requeueable",
      `evt_${"x".repeat(251)}`,
    ]) {
      await inbox.deliver({ ...anInvoiceEvent(), id });
      const { status, body } = await get(`/ops/api/events/billing/${encodeURIComponent(id)}`);
      expect(status).toBe(200);
      expect(body.event.event_id).toBe(id);
    }
  });

  test.each(["billing/evt_unknown", "unknown/evt_1", "billing/%00", "billing/%E0%A4%A"])(
    "%s is not there: 404",
    async (path) => {
      expect((await (await anOperator()).get(`/ops/api/events/${path}`)).status).toBe(404);
    },
  );
});

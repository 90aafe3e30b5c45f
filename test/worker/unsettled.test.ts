/**
 * A delivery finishes whatever row it finds unsettled, whoever left it and until whenever it was to
 * wait; and its handler gets what is stored, not what happens to be delivered.
 */
import { describe, expect, test, vi } from "vitest";
import { billing, book, ONE_BOOKING, progress } from "./disturbances.ts";
import { anInvoiceEvent, openTestbed, PIPELINE_SETTINGS, type Testbed } from "./testbed.ts";

interface Leftover {
  readonly attempts: number;
  readonly last_error: string | null;
  readonly payload: object;
  readonly type: string;
}

/** A row that waits for another hour, as something else than a sync delivery leaves it. */
async function leave(
  inbox: Testbed,
  event: { id: string; type: string },
  { attempts = 0, last_error = null, payload = event, type = event.type }: Partial<Leftover> = {},
): Promise<void> {
  await inbox.rows(
    `insert into webhook_inbox
      (endpoint, event_id, event_type, payload, attempts, fence, last_error, available_at)
      values ('billing', $1, $2, $3, $4::int, $4::int, $5, now() + interval '1 hour')`,
    [event.id, type, JSON.stringify(payload), attempts, last_error],
  );
}

describe.each(PIPELINE_SETTINGS)("with PIPELINE=%s", (PIPELINE) => {
  test.each([
    ["swept in", { attempts: 0 }],
    ["under a lease", { attempts: 1 }],
    ["failed and waiting", { attempts: 7, last_error: "23514" }],
  ])("a row that was %s is processed by a delivery, once", async (_, left) => {
    const inbox = await openTestbed({ env: { PIPELINE } });
    const event = anInvoiceEvent();
    await leave(inbox, event, left);

    expect(await inbox.deliver(event)).toMatchObject({ status: 200, outcome: "processed" });
    expect(await inbox.books()).toEqual(ONE_BOOKING);
    expect(await progress(inbox, event.id)).toMatchObject({
      outcome: "processed",
      attempts: left.attempts + 1,
      last_error: null,
    });
    expect(await inbox.deliver(event)).toMatchObject({ status: 200, outcome: "duplicate" });
  });
});

test("the handler gets the stored payload, not another body delivered under the same id", async () => {
  const handler = vi.fn(book);
  const inbox = await openTestbed({ endpoints: billing({ "invoice.paid": handler }) });
  const stored = anInvoiceEvent("invoice.paid", { id: "in_same", amountPaid: 1500 });
  const other = anInvoiceEvent("invoice.paid", { id: "in_same", amountPaid: 9900 });
  await leave(inbox, stored);

  expect(await inbox.deliver({ ...other, id: stored.id })).toMatchObject({ outcome: "processed" });
  expect(handler.mock.calls.map(([event]) => JSON.parse(JSON.stringify(event)))).toEqual([stored]);
  expect(await inbox.rows("select amount from ledger_entries")).toEqual([{ amount: "1500" }]);
  expect(await inbox.rows("select payload from webhook_inbox")).toEqual([{ payload: stored }]);
});

test("the handler gets a new event as it is stored, where that differs from what was sent", async () => {
  const seen: unknown[] = [];
  const endpoints = billing({ "customer.updated": (event) => void seen.push({ ...event }) });
  const inbox = await openTestbed({ endpoints });
  const sent = { ...anInvoiceEvent(), type: "customer.updated" };
  const body = { ...sent, data: { object: { id: "cus_1", metadata: { note: "a\u0000b" } } } };

  expect(await inbox.deliver(body)).toMatchObject({ status: 200, outcome: "processed" });
  const [row] = await inbox.rows("select payload, payload_altered from webhook_inbox");
  expect(row).toMatchObject({
    payload: { data: { object: { metadata: { note: "a\uFFFDb" } } } },
    payload_altered: true,
  });
  expect(JSON.parse(JSON.stringify(seen))).toEqual([row?.["payload"]]);
});

test("a stored event whose handler is gone is ignored, and says why", async () => {
  const inbox = await openTestbed({ endpoints: billing({}) });
  const event = anInvoiceEvent();
  await leave(inbox, event, { attempts: 3, last_error: "23514" });

  expect(await inbox.deliver(event)).toMatchObject({ status: 200, outcome: "ignored" });
  expect(
    await inbox.rows("select outcome, ignored_reason, attempts, last_error from webhook_inbox"),
  ).toEqual([{ outcome: "ignored", ignored_reason: "no_handler", attempts: 4, last_error: null }]);
});

describe("when the stored event and the delivered one differ", () => {
  test("a stored one that nobody handles is ignored, whatever the delivered one is", async () => {
    const inbox = await openTestbed();
    const delivered = anInvoiceEvent();
    const payload = { ...delivered, type: "customer.updated" };
    await leave(inbox, delivered, { payload, type: payload.type });

    expect(await inbox.deliver(delivered)).toMatchObject({ status: 200, outcome: "ignored" });
    expect(await inbox.rows("select outcome, ignored_reason from webhook_inbox")).toEqual([
      { outcome: "ignored", ignored_reason: "no_handler" },
    ]);
    expect(await inbox.books()).toMatchObject({ inbox: 1, entries: 0, messages: 0 });
  });

  test.each([
    ["a type that nobody handles", { type: "customer.updated" }],
    ["somebody else's account", { account: "acct_other" }],
    ["another livemode", { livemode: true }],
    ["the form of a thin notification", { object: "v2.core.event" }],
  ])("a stored one that is handled is not lost to %s", async (_, difference) => {
    const inbox = await openTestbed({ env: { STRIPE_LIVEMODE: "false" } });
    const stored = anInvoiceEvent();
    await leave(inbox, stored);

    const delivered = { ...stored, ...difference };
    expect(await inbox.deliver(delivered)).toMatchObject({ status: 200, outcome: "processed" });
    expect(await inbox.books()).toEqual(ONE_BOOKING);
  });
});

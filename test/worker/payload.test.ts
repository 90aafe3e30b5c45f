/** One payload, once stored, is what every handler gets; later deliveries leave it as it is. */
import { expect, test } from "vitest";
import { invoiceHandlers } from "../../src/billing/handlers.ts";
import type { Endpoints } from "../../src/endpoints.ts";
import { anInvoiceEvent, openTestbed } from "./testbed.ts";

const payloads = "select payload::text as payload, payload_altered as altered from webhook_inbox";

/** Equal texts for equal values: jsonb has an order of keys of its own. */
function inOrder(value: unknown): string {
  return JSON.stringify(value, (_key, part: unknown) =>
    typeof part === "object" && part !== null && !Array.isArray(part)
      ? Object.fromEntries(Object.entries(part).toSorted(([a], [b]) => (a < b ? -1 : 1)))
      : part,
  );
}

test("a redelivery with another `pending_webhooks` is a duplicate, and the payload stays", async () => {
  const inbox = await openTestbed();
  const event = anInvoiceEvent();
  await inbox.deliver({ ...event, pending_webhooks: 2 });
  const before = await inbox.rows(payloads);
  expect(before).toEqual([
    { payload: expect.stringContaining('"pending_webhooks": 2'), altered: false },
  ]);
  for (const change of [{ pending_webhooks: 1 }, { note: "a\u0000" }, { type: "invoice.voided" }]) {
    expect(await inbox.deliver({ ...event, ...change })).toMatchObject({
      status: 200,
      outcome: "duplicate",
    });
  }
  expect(await inbox.rows(payloads)).toEqual(before);
  expect(await inbox.books()).toMatchObject({ inbox: 1, entries: 1, messages: 1 });
});

test("of a key that stands twice the last is stored, and the last is what counts", async () => {
  const inbox = await openTestbed();
  const event = anInvoiceEvent();
  const twice = JSON.stringify(event).replace("{", '{"id":"evt_dropped","type":"x","n":1e500,');
  expect(await inbox.deliver(twice)).toMatchObject({ outcome: "processed", event: event.id });
  const columns = "event_id, event_type, payload->>'id' as id, payload->>'type' as type";
  expect(await inbox.rows(`select ${columns} from webhook_inbox`)).toEqual([
    { event_id: event.id, event_type: event.type, id: event.id, type: event.type },
  ]);
});

test("a handler gets exactly what is stored: at the first delivery, and at the one after a failure", async () => {
  const got: unknown[] = [];
  const endpoints: Endpoints = {
    billing: {
      secrets: "STRIPE_WEBHOOK_SECRET",
      accounts: "own",
      handlers: {
        "invoice.paid": (event, tx) => {
          got.push(event);
          if (got.length === 1) throw new Error("Not this time.");
          return invoiceHandlers["invoice.paid"](event, tx);
        },
      },
    },
  };
  const inbox = await openTestbed({ endpoints });
  const event = anInvoiceEvent();
  const odd = `"odd":{"k\\u0000":1e131071,"k\\ud800":"\\u0000","n":9007199254740993,"s":1.10}`;
  const body = JSON.stringify(event).replace("{", `{${odd},`);

  expect(await inbox.deliver(body)).toMatchObject({ status: 500, outcome: "failed" });
  const [failed] = await inbox.rows(payloads);
  expect(failed).toMatchObject({ altered: true });

  // The second delivery differs; the first one's payload is what was recorded, and what is handled.
  const other = body.replace('"pending_webhooks":1', '"pending_webhooks":9');
  expect(await inbox.deliver(other)).toMatchObject({ status: 200, outcome: "processed" });
  expect(await inbox.rows(payloads)).toEqual([failed]);
  const stored: unknown = JSON.parse(String(failed?.["payload"]));
  expect(got.map(inOrder)).toEqual([inOrder(stored), inOrder(stored)]);
  expect(stored).toMatchObject({
    pending_webhooks: 1,
    odd: { "k\uFFFD": "\uFFFD", n: 9_007_199_254_740_992, s: 1.1 },
  });
  expect(await inbox.books()).toMatchObject({ inbox: 1, entries: 1, messages: 1 });
});

/** What the queue is told of each message, whatever is wrong with us. */
import { expect, test } from "vitest";
import { meaningOfMessageReason } from "../../src/http/pages/meanings.ts";
import type { ConsequenceTable } from "../../src/outbox/consume.ts";
import { anInvoiceEvent } from "../worker/testbed.ts";
import { journalRows, oneSent, openOutbound, outboxRows } from "./outbox.ts";

test("while processing is paused, messages are put off, and no call is made", async () => {
  const outbound = await openOutbound();
  await oneSent(outbound);
  const ends = await outbound.consume(outbound.queue.messages, { env: { PROCESSING: "paused" } });
  expect(ends).toEqual([{ delaySeconds: 900 }]);
  expect(outbound.api.calls).toEqual([]);
});

test.each([
  [1, 30],
  [4, 240],
  [100, 3_600],
])("at delivery %i, a fault of ours puts a message off by %i s", async (attempts, delaySeconds) => {
  const outbound = await openOutbound();
  await oneSent(outbound);
  const env = { HYPERDRIVE: undefined };
  expect(await outbound.consume(outbound.queue.messages, { attempts, env })).toEqual([
    { delaySeconds },
  ]);
});

test("no delay is so long that a hundred of them outlast a queue's four days", async () => {
  const outbound = await openOutbound({ api: { fault: () => ({ status: 503 }) } });
  await oneSent(outbound);
  const env = { BACKOFF_CAP_SECONDS: "86400" };
  expect(await outbound.consume(outbound.queue.messages, { attempts: 20, env })).toEqual([
    { delaySeconds: 3_300 },
  ]);
});

test("what the queue gave up is parked without an API key, too", async () => {
  const outbound = await openOutbound();
  await oneSent(outbound);
  const { inbox, queue } = outbound;
  const env = { STRIPE_API_KEY: undefined };
  expect(await outbound.consume(queue.messages, { undelivered: true, env })).toEqual(["ack"]);
  expect(await journalRows(inbox)).toMatchObject([{ state: "parked", last_error: "Undelivered" }]);
});

test("messages of a queue with another name are not taken for ours", async () => {
  const outbound = await openOutbound();
  await oneSent(outbound);
  const ends = await outbound.consume(outbound.queue.messages, { queue: "some-other" });
  expect(ends).toEqual([{ delaySeconds: 30 }]);
  expect(outbound.api.calls).toEqual([]);
});

const KEYLESS = { STRIPE_API_KEY: undefined };

test.each([undefined, "", " "])(
  "with `%s` for an API key, what tells Stripe waits, with the reason on record, and then is told",
  async (apiKey) => {
    const env = { STRIPE_API_KEY: apiKey };
    const outbound = await openOutbound({ env });
    const key = await oneSent(outbound);
    const { inbox, queue, api } = outbound;
    for (const [attempts, delaySeconds] of [
      [1, 2],
      [12, 3_300],
    ] as const) {
      expect(await outbound.consume(queue.messages, { attempts, env })).toEqual([{ delaySeconds }]);
      expect(await journalRows(inbox)).toMatchObject([
        { key, state: "calling", last_error: "NoApiKey" },
      ]);
      await inbox.rows("update call_journal set available_at = now()");
    }
    // Nothing can have happened: however late it is, the first call is still to come.
    expect(await inbox.rows("select first_called_at from call_journal")).toEqual([
      { first_called_at: null },
    ]);
    expect(await outbound.consume(queue.messages)).toEqual(["ack"]);
    expect(await journalRows(inbox)).toMatchObject([{ key, state: "done" }]);
    expect(api.calls).toHaveLength(1);
  },
);

test.each([
  [{ ...KEYLESS }, "NoApiKey"],
  [{ STRIPE_API_URL: "ftp://127.0.0.1", SWEEP_INTERVAL_MINUTES: "0" }, "InvalidSetting"],
])("with %j, a call that the queue gives up is parked as %s", async (env, code) => {
  const outbound = await openOutbound();
  await oneSent(outbound);
  const { inbox, queue } = outbound;
  await outbound.consume(queue.messages, { env });
  await inbox.rows("update call_journal set available_at = now()");
  expect(await outbound.consume(queue.messages, { undelivered: true, env })).toEqual(["ack"]);
  expect(await journalRows(inbox)).toMatchObject([{ state: "parked", last_error: code }]);
  expect(meaningOfMessageReason(code).means).toContain("STRIPE_API_");
});

test("a consequence that asks for Stripe too early waits for a key alone, and is not lost", async () => {
  const consequences: ConsequenceTable = {
    InvoicePaymentBooked: ({ message_id, aggregate_id }, stripe) => {
      if (aggregate_id !== "in_eager") {
        return { key: `mail:${message_id}`, call: () => Promise.resolve("sent") };
      }
      const { customers } = stripe();
      return { key: `eager:${message_id}`, call: async () => (await customers.list()).object };
    },
  };
  const outbound = await openOutbound({ consequences });
  const { inbox, queue } = outbound;
  await inbox.deliver(anInvoiceEvent("invoice.paid", { id: "in_eager" }));
  await inbox.deliver(anInvoiceEvent());
  const ends = await outbound.consume(queue.messages, { attempts: 3, env: KEYLESS });
  expect(ends).toEqual([{ delaySeconds: 8 }, "ack"]);
  expect(await journalRows(inbox)).toMatchObject([{ result: "sent" }]);

  const [eager] = queue.messages;
  if (!eager) throw new Error("It was not sent.");
  expect(await outbound.consume([eager], { undelivered: true, env: KEYLESS })).toEqual(["ack"]);
  expect(await journalRows(inbox)).toContainEqual(
    expect.objectContaining({ state: "parked", last_error: "Unreadable" }),
  );
  expect(await outboxRows(inbox)).toMatchObject([{ done: false }, { done: true }]);
});

test("without an API key, what calls somebody else is called", async () => {
  let calls = 0;
  const call = () => Promise.resolve(`call ${++calls}`);
  const consequences: ConsequenceTable = {
    InvoicePaymentBooked: ({ message_id }) => ({ key: `mail:${message_id}`, call }),
  };
  const outbound = await openOutbound({ consequences });
  await oneSent(outbound);
  expect(await outbound.consume(outbound.queue.messages, { env: KEYLESS })).toEqual(["ack"]);
  expect(await journalRows(outbound.inbox)).toMatchObject([{ state: "done", result: "call 1" }]);
});

/** What the queue is told of each message, whatever is wrong with us. */
import { expect, test } from "vitest";
import { journalRows, oneSent, openOutbound } from "./outbox.ts";

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

test("no delay is longer than a queue takes", async () => {
  const outbound = await openOutbound({ api: { fault: () => ({ status: 503 }) } });
  await oneSent(outbound);
  const env = { BACKOFF_CAP_SECONDS: "86400" };
  expect(await outbound.consume(outbound.queue.messages, { attempts: 20, env })).toEqual([
    { delaySeconds: 43_200 },
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

test("without an API key, messages are delivered again later", async () => {
  const outbound = await openOutbound();
  await oneSent(outbound);
  const ends = await outbound.consume(outbound.queue.messages, { env: { STRIPE_API_KEY: "" } });
  expect(ends).toEqual([{ delaySeconds: 30 }]);
});

/** What follows from a message happens once in effect, or a person hears of it. */
import { expect, test } from "vitest";
import { anInvoiceEvent, query } from "../worker/testbed.ts";
import { journalRows, oneSent, openOutbound, outboxRows } from "./outbox.ts";

const DONE = { state: "done", result: "updated", last_error: null };

test("a booked payment is told to its customer's metadata, under the event's own key", async () => {
  const outbound = await openOutbound();
  const key = await oneSent(outbound);
  const { inbox, queue, api } = outbound;
  expect(await outbound.consume(queue.messages)).toEqual(["ack"]);
  expect(api.calls).toMatchObject([{ key, customer: "cus_test" }]);
  expect(api.calls[0]?.parameters).toContain("metadata");
  expect(await journalRows(inbox)).toEqual([{ key, attempts: 1, ...DONE }]);
  expect(await outboxRows(inbox)).toMatchObject([{ published: true, done: true }]);
});

test("a message that comes twice, one after the other or at once, leads to one call", async () => {
  const outbound = await openOutbound();
  await oneSent(outbound);
  const { queue, api, inbox } = outbound;
  const ends = await Promise.all([
    outbound.consume(queue.messages),
    outbound.consume(queue.messages),
  ]);
  expect(await outbound.consume(queue.messages)).toEqual(["ack"]);
  expect(api.calls).toHaveLength(1);
  expect(ends.flat()).toContain("ack");
  expect(await outboxRows(inbox)).toMatchObject([{ done: true }]);
});

test.each([
  ["whose answer was lost", "lose the answer", "StripeConnectionError"],
  ["that was lost", "lose the request", "StripeConnectionError"],
  ["that was answered with 503", { status: 503 }, "Stripe:503"],
  ["that was answered with 409", { status: 409 }, "Stripe:409"],
] as const)(
  "a call %s is repeated under the same key, and has one effect",
  async (_, fault, error) => {
    const outbound = await openOutbound({ api: { fault: ({ n }) => (n === 1 ? fault : null) } });
    const key = await oneSent(outbound);
    const { inbox, queue, api } = outbound;
    expect(await outbound.consume(queue.messages)).toEqual([{ delaySeconds: 2 }]);
    expect(await journalRows(inbox)).toMatchObject([{ state: "calling", last_error: error }]);
    // Before its back-off is over, a delivery is put off.
    expect(await outbound.consume(queue.messages, { attempts: 2 })).toEqual([
      { delaySeconds: expect.any(Number) },
    ]);
    await inbox.rows("update call_journal set available_at = now()");
    expect(await outbound.consume(queue.messages, { attempts: 3 })).toEqual(["ack"]);
    expect(api.calls.map((call) => call.key)).toEqual([key, key]);
    expect([...api.effects.values()]).toEqual([1]);
    expect(await journalRows(inbox)).toMatchObject([{ attempts: 2, ...DONE }]);
  },
);

test("a call that was answered with 500 is answered so for ever, and goes to review before its key is new again", async () => {
  const outbound = await openOutbound({
    api: { fault: ({ n }) => (n === 1 ? { status: 500 } : null) },
  });
  const key = await oneSent(outbound);
  const { inbox, queue, api } = outbound;
  for (const hours of [0, 10, 9]) {
    await inbox.rows(`update call_journal set available_at = now(),
      first_called_at = first_called_at - interval '${hours} hours'`);
    expect(await outbound.consume(queue.messages)).toEqual([{ delaySeconds: 2 }]);
    expect(await journalRows(inbox)).toMatchObject([
      { key, state: "calling", last_error: "Stripe:500" },
    ]);
  }
  await inbox.rows(`update call_journal set available_at = now(),
    first_called_at = first_called_at - interval '2 hours'`);
  api.forget();
  expect(await outbound.consume(queue.messages)).toEqual(["ack"]);
  expect(await journalRows(inbox)).toMatchObject([{ state: "parked", last_error: "Uncertain" }]);
  expect(api.calls.map((call) => call.key)).toEqual([key, key, key]);
  expect(api.told).toEqual([]);
});

test("Retry-After is honoured", async () => {
  const fault = { status: 429, retryAfterSeconds: 77 };
  const outbound = await openOutbound({ api: { fault: () => fault } });
  await oneSent(outbound);
  expect(await outbound.consume(outbound.queue.messages)).toEqual([{ delaySeconds: 77 }]);
  const [row] = await outbound.inbox.rows(
    "select round(extract(epoch from available_at - now()))::int as seconds from call_journal",
  );
  expect(row?.["seconds"]).toBeGreaterThan(70);
});

test.each([
  [0, 2],
  [99_999_999, 3_300],
])("Retry-After of %i s is a delay of %i s", async (retryAfterSeconds, delaySeconds) => {
  const outbound = await openOutbound({
    api: { fault: () => ({ status: 429, retryAfterSeconds }) },
  });
  await oneSent(outbound);
  expect(await outbound.consume(outbound.queue.messages)).toEqual([{ delaySeconds }]);
});

test.each([401, 403])(
  "an answer of %i speaks of our API key: the call is made again, and no person needed",
  async (status) => {
    const outbound = await openOutbound({
      api: { fault: ({ n }) => (n === 1 ? { status } : null) },
    });
    await oneSent(outbound);
    const { inbox, queue } = outbound;
    expect(await outbound.consume(queue.messages)).toEqual([{ delaySeconds: 2 }]);
    await inbox.rows("update call_journal set available_at = now()");
    expect(await outbound.consume(queue.messages)).toEqual(["ack"]);
    expect(await journalRows(inbox)).toMatchObject([DONE]);
  },
);

test.each([
  [{ status: 401 }, 8, 256],
  [{ status: 401 }, 12, 3_300],
  [{ status: 429 }, 12, 300],
  [{ status: 503 }, 8, 256],
  [{ status: 503 }, 12, 300],
])(
  "a call that is answered with %j at delivery %i is made again after %i s",
  async (fault, attempts, delaySeconds) => {
    const outbound = await openOutbound({ api: { fault: () => fault } });
    await oneSent(outbound);
    const { queue } = outbound;
    expect(await outbound.consume(queue.messages, { attempts })).toEqual([{ delaySeconds }]);
  },
);

test("a refused API key is no reason to wait longer where the call may have happened before", async () => {
  const outbound = await openOutbound({
    api: { fault: ({ n }) => ({ status: n === 1 ? 503 : 401 }) },
  });
  await oneSent(outbound);
  const { inbox, queue } = outbound;
  await outbound.consume(queue.messages);
  await inbox.rows("update call_journal set available_at = now()");
  expect(await outbound.consume(queue.messages, { attempts: 12 })).toEqual([{ delaySeconds: 300 }]);
});

test.each([400, 402, 404])(
  "a call that is answered with %i goes to review at once",
  async (status) => {
    const outbound = await openOutbound({ api: { fault: () => ({ status }) } });
    await oneSent(outbound);
    const { inbox, queue, api } = outbound;
    expect(await outbound.consume(queue.messages)).toEqual(["ack"]);
    expect(await outbound.consume(queue.messages)).toEqual(["ack"]);
    expect(api.calls).toHaveLength(1);
    expect(await journalRows(inbox)).toMatchObject([
      { state: "parked", last_error: `Stripe:${status}` },
    ]);
    expect(await outboxRows(inbox)).toMatchObject([{ published: true, done: false }]);
  },
);

test.each([
  ["uncertain", "lose the answer", "19 hours", "ack", "done", 2],
  ["uncertain", "lose the answer", "21 hours", "ack", "parked", 1],
  ["certain to have done nothing", { status: 429 }, "21 hours", "ack", "done", 2],
] as const)(
  "a call that is %s (%o) is tried again after %s: %s, %s",
  async (_, fault, age, end, state, calls) => {
    const outbound = await openOutbound({ api: { fault: ({ n }) => (n === 1 ? fault : null) } });
    await oneSent(outbound);
    const { inbox, queue, api } = outbound;
    await outbound.consume(queue.messages);
    await inbox.rows(`update call_journal set available_at = now(),
      first_called_at = first_called_at - interval '${age}'`);
    expect(await outbound.consume(queue.messages)).toEqual([end]);
    expect(await journalRows(inbox)).toMatchObject([{ state }]);
    expect(api.calls).toHaveLength(calls);
    expect(api.told).toHaveLength(1);
  },
);

test("an uncertain attempt stays the first one, though a later one is certain to have done nothing", async () => {
  const faults = ["lose the answer", { status: 429 }] as const;
  const outbound = await openOutbound({ api: { fault: ({ n }) => faults[n - 1] ?? null } });
  await oneSent(outbound);
  const { inbox, queue, api } = outbound;
  for (const hours of [0, 10, 11]) {
    await inbox.rows(`update call_journal set available_at = now(),
      first_called_at = first_called_at - interval '${hours} hours'`);
    await outbound.consume(queue.messages);
  }
  expect(await journalRows(inbox)).toMatchObject([{ state: "parked", last_error: "Uncertain" }]);
  expect(api.calls).toHaveLength(2);
});

test("what the queue gave up goes to review; what was done in the meantime does not", async () => {
  const outbound = await openOutbound();
  const { inbox, queue } = outbound;
  await oneSent(outbound);
  expect(await outbound.consume(queue.messages, { undelivered: true })).toEqual(["ack"]);
  expect(await journalRows(inbox)).toMatchObject([{ state: "parked", last_error: "Undelivered" }]);

  const other = await openOutbound();
  await oneSent(other);
  await other.consume(other.queue.messages);
  expect(await other.consume(other.queue.messages, { undelivered: true })).toEqual(["ack"]);
  expect(await journalRows(other.inbox)).toMatchObject([DONE]);
});

test("a payment without a customer has nothing to tell, and is done", async () => {
  const outbound = await openOutbound();
  const { inbox, queue, api } = outbound;
  await inbox.deliver(anInvoiceEvent("invoice.paid", { customer: null }));
  expect(await outbound.consume(queue.messages)).toEqual(["ack"]);
  expect(await outboxRows(inbox)).toMatchObject([{ done: true }]);
  expect(api.calls).toEqual([]);
});

test("an event whose id leaves no room in a key has its effect all the same, once", async () => {
  const outbound = await openOutbound();
  const { inbox, queue, api } = outbound;
  const event = { ...anInvoiceEvent(), id: `evt_${"1".repeat(251)}` };
  await inbox.deliver(event);
  await outbound.consume(queue.messages);
  expect(await outbound.consume(queue.messages)).toEqual(["ack"]);
  expect(api.calls).toHaveLength(1);
  expect(await outboxRows(inbox)).toMatchObject([{ done: true }]);
});

test("a message of a kind that is not known goes to review; what names no message is foreign", async () => {
  const outbound = await openOutbound();
  const { inbox, queue } = outbound;
  await oneSent(outbound);
  const [sent] = queue.messages;
  const unknown = { body: { ...Object(sent?.body), event_type: "RefundBooked" } };
  expect(await outbound.consume([unknown, { body: "?" }])).toEqual(["ack", "ack"]);
  expect(await journalRows(inbox)).toMatchObject([{ state: "parked", last_error: "Unreadable" }]);
  expect(await outboxRows(inbox)).toMatchObject([{ done: false }]);
});

test("a message that could not be read, and then is, leaves nothing to review", async () => {
  const outbound = await openOutbound();
  const { inbox, queue } = outbound;
  const key = await oneSent(outbound);
  const body = { ...Object(queue.messages[0]?.body), event_type: "RefundBooked" };
  await outbound.consume([{ body }]);
  expect(await outbound.consume(queue.messages)).toEqual(["ack"]);
  expect(await journalRows(inbox)).toMatchObject([{ key, ...DONE }]);
});

test("who comes to know that a call has happened says so, though the call was parked meanwhile", async () => {
  const called = Promise.withResolvers<void>();
  const parked = Promise.withResolvers<null>();
  const fault = () => {
    called.resolve();
    return parked.promise;
  };
  const outbound = await openOutbound({ api: { fault } });
  await oneSent(outbound);
  const { inbox, queue } = outbound;
  const consuming = outbound.consume(queue.messages);
  await called.promise;
  await inbox.rows(`update call_journal set state = 'parked', parked_at = now(), fence = fence + 1,
    last_error = 'Undelivered'`);
  parked.resolve(null);
  expect(await consuming).toEqual(["ack"]);
  expect(await journalRows(inbox)).toMatchObject([DONE]);
  expect(await outboxRows(inbox)).toMatchObject([{ done: true }]);
});

test("no transaction is open while Stripe is called", async () => {
  let databaseUrl = "";
  const open: unknown[] = [];
  const outbound = await openOutbound({
    api: {
      fault: async () => {
        const sessions = await query(
          databaseUrl,
          `select state from pg_stat_activity where datname = current_database()
            and application_name = 'stripe-inbox' and xact_start is not null`,
        );
        open.push(...sessions);
        return null;
      },
    },
  });
  databaseUrl = outbound.inbox.databaseUrl;
  await oneSent(outbound);
  expect(await outbound.consume(outbound.queue.messages)).toEqual(["ack"]);
  expect(open).toEqual([]);
});

/** Messages leave: at least once, in the order of their aggregate, and none is forgotten. */
import { expect, test } from "vitest";
import { dispatchBatch, type Send } from "../../src/outbox/dispatch.ts";
import { whileAnother } from "../worker/disturbances.ts";
import { anInvoiceEvent } from "../worker/testbed.ts";
import { openConnection } from "./holders.ts";
import { openOutbound, outboxRows } from "./outbox.ts";

const POLICY = {
  timeouts: { lockTimeoutMs: 3_000, statementTimeoutMs: 5_000 },
  leaseSeconds: 120,
  maxAttempts: 10,
  backoffCapSeconds: 300,
};

const LEFT = { published: true, done: false, parked: false, last_error: null };
const WAITS = { published: false, done: false, parked: false };

/** Messages 1 and 2 of one invoice, and 3 of another. */
async function threeWait(inbox: { rows: (statement: string) => Promise<unknown> }): Promise<void> {
  await inbox.rows(`insert into outbox (aggregate_type, aggregate_id, event_type, payload)
    values ('Invoice', 'in_a', 'First', '{}'), ('Invoice', 'in_a', 'Second', '{}'),
      ('Invoice', 'in_b', 'Other', '{}')`);
}

async function timePasses(inbox: { rows: (statement: string) => Promise<unknown> }): Promise<void> {
  await inbox.rows("update outbox set available_at = now() where published_at is null");
}

function messageOf(type: string): unknown {
  return { body: expect.objectContaining({ event_type: type }) };
}

test.each(["sync", "async"])(
  "a booked payment leaves right behind the answer, %s",
  async (mode) => {
    const { inbox, queue } = await openOutbound({ env: { RECEIVE_MODE: mode } });
    const event = anInvoiceEvent();
    await inbox.deliver(event);
    expect(await outboxRows(inbox)).toEqual([{ attempts: 1, ...LEFT }]);
    expect(queue.messages).toEqual([
      {
        body: {
          message_id: 1,
          aggregate_type: "Invoice",
          aggregate_id: event.data?.object["id"],
          event_type: "InvoicePaymentBooked",
          payload: expect.objectContaining({ event_id: event.id, amount: 4200 }),
        },
      },
    ]);
  },
);

test("where no queue is bound, messages are not claimed, neither behind an answer nor by a tick", async () => {
  const { inbox } = await openOutbound({ env: { OUTBOX_QUEUE: undefined } });
  await inbox.deliver(anInvoiceEvent());
  await inbox.tick();
  expect(await outboxRows(inbox)).toEqual([{ attempts: 0, ...WAITS, last_error: null }]);
});

test("a binding that is no queue is refused by name", async () => {
  const { inbox } = await openOutbound({ env: { OUTBOX_QUEUE: "stripe-inbox-outbox" } });
  expect(await inbox.deliver(anInvoiceEvent())).toMatchObject({ status: 503 });
});

test("a tick sends what is left over, the oldest of each aggregate first", async () => {
  const { inbox, queue } = await openOutbound();
  await threeWait(inbox);
  expect(await inbox.tick()).toMatchObject({ published: 3, unsent: 0 });
  expect(queue.sends).toEqual([[messageOf("First"), messageOf("Other")], [messageOf("Second")]]);
});

test.each([
  ["is leased", "available_at = now() + interval '1 hour', attempts = 1"],
  ["waits for its back-off", "available_at = now() + interval '1 hour', last_error = 'Error'"],
  ["is parked", "parked_at = now(), last_error = 'Error'"],
])(
  "an older message that %s blocks those of its aggregate behind it, and no other",
  async (_, set) => {
    const { inbox, queue } = await openOutbound();
    await threeWait(inbox);
    await inbox.rows(`update outbox set ${set} where id = 1`);
    expect(await inbox.tick()).toMatchObject({ published: 1 });
    expect(queue.messages).toEqual([{ body: expect.objectContaining({ message_id: 3 }) }]);
  },
);

test("a smaller id that is committed later leaves, too", async () => {
  const { inbox, queue } = await openOutbound();
  await threeWait(inbox);
  await inbox.rows("delete from outbox where id = 3");
  await inbox.tick();
  await inbox.rows(`insert into outbox (id, aggregate_type, aggregate_id, event_type, payload)
    overriding system value values (0, 'Invoice', 'in_late', 'Late', '{}')`);
  await inbox.tick();
  expect(queue.messages).toHaveLength(3);
});

test("a send that fails is tried again after a back-off, and parked after the last attempt", async () => {
  const { inbox, queue } = await openOutbound({ env: { MAX_ATTEMPTS: "2" } });
  queue.before = () => Promise.reject(new TypeError("It is full of secrets."));
  await inbox.deliver(anInvoiceEvent());
  expect(await outboxRows(inbox)).toEqual([{ attempts: 1, ...WAITS, last_error: "TypeError" }]);
  await timePasses(inbox);
  expect(await inbox.tick()).toMatchObject({ needs_review: 0, messages_in_review: 1 });
  expect(await outboxRows(inbox)).toEqual([
    { attempts: 2, ...WAITS, parked: true, last_error: "TypeError" },
  ]);
});

test("while the queue takes nothing, a tick tries one batch, and the others keep their attempts", async () => {
  const { inbox, queue } = await openOutbound();
  queue.before = () => Promise.reject(new TypeError("It is down."));
  await inbox.rows(`insert into outbox (aggregate_type, aggregate_id, event_type, payload)
    select 'Invoice', 'in_' || n, 'First', '{}' from generate_series(1, 150) n`);
  expect(await inbox.tick()).toMatchObject({ unsent: 100 });
  expect(
    await inbox.rows("select attempts, count(*)::int as rows from outbox group by 1 order by 1"),
  ).toEqual([
    { attempts: 0, rows: 50 },
    { attempts: 1, rows: 100 },
  ]);
});

test("trouble with events keeps no message from leaving", async () => {
  const { inbox, queue } = await openOutbound({
    env: { LOCK_TIMEOUT_MS: "50", STATEMENT_TIMEOUT_MS: "200" },
  });
  await threeWait(inbox);
  await whileAnother(inbox, async (other) => {
    await other.query("lock table webhook_inbox in access exclusive mode");
    await inbox.tick();
  });
  expect(queue.messages).toHaveLength(3);
});

test("a dispatcher that dies between send and mark has its message sent again", async () => {
  const { inbox, queue } = await openOutbound();
  await threeWait(inbox);
  const dying = await openConnection(inbox.databaseUrl);
  const sent: unknown[] = [];
  const sendAndDie: Send = async (messages) => {
    sent.push(...messages);
    await inbox.rows(`select pg_terminate_backend(pid, 5000) from pg_stat_activity
      where datname = current_database() and application_name = 'stripe-inbox'`);
  };
  await expect(dispatchBatch(dying, sendAndDie, POLICY)).rejects.toThrow();
  expect(sent).toHaveLength(2);
  expect(await inbox.tick()).toMatchObject({ published: 0 });
  await timePasses(inbox);
  expect(await inbox.tick()).toMatchObject({ published: 3 });
  expect(queue.messages).toHaveLength(3);
});

test("a late dispatcher changes nothing", async () => {
  const { inbox, queue } = await openOutbound();
  await threeWait(inbox);
  const late = await openConnection(inbox.databaseUrl);
  const counts = await dispatchBatch(
    late,
    async () => {
      await timePasses(inbox);
      await inbox.tick();
    },
    POLICY,
  );
  expect(counts).toEqual({ published: 0, unsent: 0, parked: 0, refused: 0 });
  expect(queue.messages).toHaveLength(3);
  const failing = await dispatchBatch(late, () => Promise.reject(new Error()), POLICY);
  expect(failing).toBeNull();
});

test("a message whose last allowed attempt crashed goes to review", async () => {
  const { inbox } = await openOutbound();
  await threeWait(inbox);
  await inbox.rows("update outbox set attempts = 10 where id = 1");
  expect(await inbox.tick()).toMatchObject({ messages_in_review: 1, published: 1 });
  expect(await outboxRows(inbox)).toMatchObject([
    { parked: true, last_error: "Crashed" },
    WAITS,
    LEFT,
  ]);
});

test("what is due at once is split into sends of 100, and by size; what is too large is parked", async () => {
  const { inbox, queue } = await openOutbound();
  await inbox.rows(`insert into outbox (aggregate_type, aggregate_id, event_type, payload)
    select 'Invoice', 'in_' || n, 'Event', jsonb_build_object('text', repeat('x', case
      when n = 1 then 200000 when n < 7 then 60000 else 1 end))
    from generate_series(1, 150) as n`);
  expect(await inbox.tick()).toMatchObject({ published: 149, messages_in_review: 1 });
  expect(queue.messages).toHaveLength(149);
  for (const messages of queue.sends) {
    expect(messages.length).toBeLessThanOrEqual(100);
    expect(JSON.stringify(messages).length).toBeLessThan(256_000);
  }
});

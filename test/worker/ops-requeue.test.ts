/** Events that an operator has processed again: once, on record, and never more than was agreed to. */
import { Client } from "pg";
import { describe, expect, test } from "vitest";
import { actions, anOperator, parked, UNUSABLE, WHY } from "./operator.ts";
import { anInvoiceEvent } from "./testbed.ts";
import { states } from "./waiting.ts";

describe("an event", () => {
  test("that needs review is processed again, by the next tick", async () => {
    const operator = await anOperator();
    const { inbox, send } = operator;
    const event = anInvoiceEvent("invoice.paid", { amountPaid: -1 });
    await inbox.deliver(event);
    const { body } = await send("/ops/api/events/requeue", {
      event_id: event.id,
      count: 1,
      why: WHY,
    });
    expect(body).toEqual({ requeued: 1, left: 0, most_at_once: 5000 });
    const [row] = await inbox.rows(
      "select attempts, parked_at, last_error, fence::int from webhook_inbox",
    );
    expect(row).toEqual({ attempts: 0, parked_at: null, last_error: null, fence: 1 });
    expect(await actions(operator)).toEqual([
      {
        operator: "Ada",
        via: "token",
        action: "requeue_events",
        subject: `event ${event.id}`,
        why: WHY,
        affected: 1,
      },
    ]);
    expect(await inbox.tick()).toMatchObject({ needs_review: 1 });
  });

  test("that was ignored is judged again", async () => {
    const operator = await anOperator({ env: { STRIPE_LIVEMODE: "true" } });
    const event = anInvoiceEvent();
    await operator.inbox.deliver(event);
    const asked = { event_id: event.id, count: 1, why: "it was our livemode" };
    expect((await operator.send("/ops/api/events/requeue", asked)).body.requeued).toBe(1);
    expect(await operator.inbox.tick({ STRIPE_LIVEMODE: "false" })).toMatchObject({ processed: 1 });
    expect(await operator.inbox.books()).toMatchObject({ entries: 1 });
  });

  test("requeued twice is requeued once, and is on record once", async () => {
    const operator = await anOperator();
    await parked(operator, 1);
    const asked = { event_id: `evt_${UNUSABLE}1`, count: 1, why: WHY };
    expect((await operator.send("/ops/api/events/requeue", asked)).body.requeued).toBe(1);
    expect(await operator.send("/ops/api/events/requeue", asked)).toMatchObject({
      status: 200,
      body: { requeued: 0, left: 0, states: [{ endpoint: "billing", state: "waiting" }] },
    });
    expect(await actions(operator)).toHaveLength(1);
  });

  test("that is processed, or not there, stays so, and nothing is on record", async () => {
    const operator = await anOperator();
    const event = anInvoiceEvent();
    await operator.inbox.deliver(event);
    const asked = { event_id: event.id, count: 1, why: WHY };
    expect((await operator.send("/ops/api/events/requeue", asked)).body).toMatchObject({
      requeued: 0,
      states: [{ state: "processed" }],
    });
    const unknown = { ...asked, event_id: "evt_unknown" };
    expect((await operator.send("/ops/api/events/requeue", unknown)).status).toBe(404);
    expect(await states(operator.inbox)).toEqual({ processed: 1 });
    expect(await actions(operator)).toEqual([]);
  });

  test("at two endpoints is requeued at both, or at the one that is named", async () => {
    const operator = await anOperator();
    await operator.inbox.rows(`insert into webhook_inbox
        (endpoint, event_id, event_type, payload, parked_at, last_error)
      values ('billing', 'evt_1', 'x', '{}', now(), 'E'), ('connect', 'evt_1', 'x', '{}', now(), 'E')`);
    const { get, send } = operator;
    expect((await get("/ops/api/events/requeueable?event_id=evt_1")).body.count).toBe(2);
    const asked = { event_id: "evt_1", endpoint: "connect", count: 1, why: WHY };
    expect((await send("/ops/api/events/requeue", asked)).body.requeued).toBe(1);
    const left = await operator.inbox.rows(
      "select endpoint from webhook_inbox where parked_at is not null",
    );
    expect(left).toEqual([{ endpoint: "billing" }]);
  });

  test("whose payload is gone stays as it is", async () => {
    const operator = await anOperator({ env: { STRIPE_LIVEMODE: "true" } });
    await operator.inbox.deliver(anInvoiceEvent());
    await operator.inbox.rows("update webhook_inbox set payload = null");
    const { body } = await operator.get("/ops/api/events/requeueable?ignored_reason=livemode");
    expect(body).toMatchObject({ count: 0, more: false });
    const asked = { ignored_reason: "livemode", count: 1, why: WHY };
    expect((await operator.send("/ops/api/events/requeue", asked)).body.requeued).toBe(0);
  });
});

describe("all events of a reason", () => {
  test("are counted first, and then requeued: those that were agreed to, the oldest first", async () => {
    const operator = await anOperator();
    await parked(operator, 5);
    await parked(operator, 2, "TypeError");
    const { get, send, inbox } = operator;
    const { body } = await get(`/ops/api/events/requeueable?reason=${UNUSABLE}`);
    expect(body).toMatchObject({ count: 5, more: false });
    const three = { reason: UNUSABLE, count: 3, why: WHY };
    expect((await send("/ops/api/events/requeue", three)).body).toMatchObject({
      requeued: 3,
      left: 2,
    });
    const left = await inbox.rows(
      "select event_id from webhook_inbox where parked_at is not null order by received_at desc",
    );
    expect(left.map((row) => row["event_id"])).toEqual([
      "evt_TypeError1",
      `evt_${UNUSABLE}1`,
      "evt_TypeError2",
      `evt_${UNUSABLE}2`,
    ]);
    expect(await actions(operator)).toEqual([
      expect.objectContaining({ subject: `events parked with ${UNUSABLE}`, affected: 3 }),
    ]);
  });

  test("are taken in bounded transactions, each on record", async () => {
    const operator = await anOperator();
    await parked(operator, 5_003);
    const asked = { reason: UNUSABLE, count: 5_003, why: WHY };
    expect((await operator.send("/ops/api/events/requeue", asked)).body).toMatchObject({
      requeued: 5_000,
      left: 3,
    });
    expect(
      (await operator.send("/ops/api/events/requeue", { ...asked, count: 3 })).body,
    ).toMatchObject({
      requeued: 3,
      left: 0,
    });
    expect((await actions(operator)).map((row) => row["affected"])).toEqual([5_000, 3]);
  });

  test("are requeued by two operators at once without one being taken twice", async () => {
    const operator = await anOperator();
    await parked(operator, 300);
    const asked = { reason: UNUSABLE, count: 300, why: WHY };
    const said = await Promise.all(
      Array.from({ length: 4 }, () => operator.send("/ops/api/events/requeue", asked)),
    );
    expect(said.reduce((sum, { body }) => sum + Number(body.requeued), 0)).toBe(300);
    expect(await operator.inbox.rows("select distinct fence::int from webhook_inbox")).toEqual([
      { fence: 1 },
    ]);
    const recorded = await actions(operator);
    expect(recorded.reduce((sum, row) => sum + Number(row["affected"]), 0)).toBe(300);
  });

  test("wait for one that is being worked on; should that take too long, none is requeued", async () => {
    const operator = await anOperator();
    await parked(operator, 2);
    const { inbox, send } = operator;
    const holder = new Client({ connectionString: inbox.databaseUrl });
    await holder.connect();
    const hold = () =>
      holder.query("select 1 from webhook_inbox where event_id = $1 for update", [
        `evt_${UNUSABLE}1`,
      ]);
    try {
      await holder.query("begin");
      await hold();
      const asked = { reason: UNUSABLE, count: 2, why: WHY };
      const { status, body } = await send("/ops/api/events/requeue", asked);
      expect(status).toBe(503);
      expect(body).toMatchObject({ sqlstate: "55P03", todo: expect.stringContaining("again") });
      const sending = send("/ops/api/events/requeue", asked);
      await holder.query("rollback");
      expect((await sending).body).toMatchObject({ requeued: 2, left: 0 });
    } finally {
      await holder.end();
    }
  });
});

test("what was done is said, though what is left cannot be counted", async () => {
  const operator = await anOperator();
  await parked(operator, 3);
  const { inbox, send } = operator;
  // From the first requeue on, who reads a parked row is refused.
  await inbox.rows(`create function refuse() returns boolean language plpgsql as $$
    begin if exists (select from operator_actions) then raise exception 'no'; end if; return true; end $$`);
  await inbox.rows("alter table webhook_inbox rename to hidden_inbox");
  await inbox.rows(`create view webhook_inbox as select * from hidden_inbox where refuse()`);
  const asked = { reason: UNUSABLE, count: 2, why: WHY };
  const { status, body } = await send("/ops/api/events/requeue", asked);
  expect(status).toBe(200);
  expect(body).toMatchObject({ requeued: 2, left: null });
});

test("without its record, nothing is done", async () => {
  const operator = await anOperator();
  await parked(operator, 1);
  await operator.inbox.rows(
    "alter table operator_actions add constraint no check (false) not valid",
  );
  const asked = { reason: UNUSABLE, count: 1, why: WHY };
  expect((await operator.send("/ops/api/events/requeue", asked)).status).toBe(503);
  expect(await states(operator.inbox)).toEqual({ parked: 1 });
});

/** What a person has seen is what is taken: not what came since, and not twice. */
import { beforeEach, describe, expect, test } from "vitest";
import { anOperator, type Operator, parked, UNUSABLE, WHY } from "./operator.ts";
import { anInvoiceEvent } from "./testbed.ts";

let operator: Operator;
beforeEach(async () => {
  operator = await anOperator();
});

const rows = (statement: string) => operator.inbox.rows(statement);
const seen = async (what: "events" | "messages", query: string) =>
  (await operator.get(`/ops/api/${what}/requeueable?${query}`)).body;
const requeue = async (what: "events" | "messages", body: object) =>
  (await operator.send(`/ops/api/${what}/requeue`, { why: WHY, ...body })).body;

const again = () => rows("update outbox set parked_at = now(), last_error = 'Unreadable'");

describe("events", () => {
  beforeEach(() => parked(operator, 5));

  test("that were parked since are left, though they are older", async () => {
    const { count, shown } = await seen("events", `reason=${UNUSABLE}`);
    await rows(
      `insert into webhook_inbox (endpoint, event_id, event_type, payload, attempts, parked_at, last_error, received_at)
       values ('billing', 'evt_since', 'invoice.paid', '{}', 1, now(), '${UNUSABLE}', now() - interval '1 day')`,
    );
    const said = await requeue("events", { reason: UNUSABLE, count: count + 1, shown });
    expect(said).toMatchObject({ requeued: 5 });
    expect(await rows("select event_id from webhook_inbox where parked_at is not null")).toEqual([
      { event_id: "evt_since" },
    ]);
  });

  test("that are parked again are not taken by the same agreement", async () => {
    const { count, shown } = await seen("events", `reason=${UNUSABLE}`);
    expect(await requeue("events", { reason: UNUSABLE, count, shown })).toMatchObject({
      requeued: 5,
    });
    await rows(
      `update webhook_inbox set parked_at = now(), attempts = 1, last_error = '${UNUSABLE}'`,
    );
    expect(await requeue("events", { reason: UNUSABLE, count, shown })).toMatchObject({
      requeued: 0,
    });
    expect(await requeue("events", { reason: UNUSABLE, count })).toMatchObject({ requeued: 5 });
  });

  test("of one moment are told apart", async () => {
    await rows("update webhook_inbox set received_at = now()");
    const { shown } = await seen("events", `reason=${UNUSABLE}`);
    const parts = JSON.parse(atob(shown.replaceAll("-", "+").replaceAll("_", "/")));
    const [{ third } = {}] = await rows(
      "select event_id as third from webhook_inbox order by event_id offset 2 limit 1",
    );
    const less = btoa(JSON.stringify([...parts.slice(0, 3), third])).replaceAll("=", "");
    expect(await requeue("events", { reason: UNUSABLE, count: 5, shown: less })).toMatchObject({
      requeued: 3,
    });
  });

  test.each(["nonsense", btoa("[1]"), btoa('["2026-01-01","x","y","z"]')])(
    "%s is not what was shown",
    async (shown) => {
      const body = { reason: UNUSABLE, count: 5, why: WHY, shown: shown.replaceAll("=", "") };
      const said = await operator.send("/ops/api/events/requeue", body);
      expect(said).toMatchObject({
        status: 400,
        body: { error: "shown: must be as it was given" },
      });
    },
  );

  test("there are none, and so nothing is shown", async () => {
    expect(await seen("events", "reason=never")).toEqual({ count: 0, more: false, shown: null });
  });
});

describe("messages", () => {
  beforeEach(async () => {
    for (const _ of [1, 2, 3]) await operator.inbox.deliver(anInvoiceEvent());
    await rows("update outbox set parked_at = now(), last_error = 'Unreadable'");
  });

  test("that were parked again, or came since, are not taken by the same agreement", async () => {
    const { count, shown } = await seen("messages", "reason=Unreadable");
    expect(count).toBe(3);
    expect(await requeue("messages", { reason: "Unreadable", count, shown })).toMatchObject({
      requeued: 3,
    });
    await operator.inbox.deliver(anInvoiceEvent());
    await again();
    expect(await requeue("messages", { reason: "Unreadable", count, shown })).toMatchObject({
      requeued: 0,
    });
    expect(await requeue("messages", { reason: "Unreadable", count })).toMatchObject({
      requeued: 3,
    });
  });

  test("one, that left again meanwhile, is not sent a third time by the same agreement", async () => {
    const { shown } = await seen("messages", "message_id=1");
    expect(await requeue("messages", { message_id: 1, count: 1, shown })).toMatchObject({
      requeued: 1,
    });
    await rows("update outbox set published_at = now() where id = 1");
    expect(await requeue("messages", { message_id: 1, count: 1, shown })).toMatchObject({
      requeued: 0,
    });
  });

  test("one whose call was parked since is left: whoever agreed has not seen why", async () => {
    await rows("update outbox set parked_at = null, last_error = null, published_at = now()");
    const { shown } = await seen("messages", "message_id=1");
    await rows(
      `insert into call_journal (key, message_id, state, attempts, available_at, parked_at, last_error)
       values ('key', 1, 'parked', 1, now(), now() + interval '1 ms', 'Uncertain')`,
    );
    expect(await requeue("messages", { message_id: 1, count: 1, shown })).toMatchObject({
      requeued: 0,
    });
    expect(await requeue("messages", { message_id: 1, count: 1 })).toMatchObject({ requeued: 1 });
  });
});

/** Messages, discrepancies and actions: what an operator reads of them, and does. */
import { describe, expect, test } from "vitest";
import { actions, anOperator, type Operator, parked, UNUSABLE, WHY } from "./operator.ts";
import { anInvoiceEvent, freshId } from "./testbed.ts";

const contradict = async ({ inbox }: Operator): Promise<void> => {
  const id = freshId("in");
  await inbox.deliver(anInvoiceEvent("invoice.voided", { id, status: "void" }));
  await inbox.deliver(anInvoiceEvent("invoice.paid", { id }));
};

describe("messages", () => {
  test("that could not be sent are sent again, as many as were agreed to", async () => {
    const operator = await anOperator();
    const { inbox, get, send } = operator;
    for (let n = 0; n < 3; n++) await inbox.deliver(anInvoiceEvent());
    await inbox.rows(
      "update outbox set parked_at = now(), last_error = 'TypeError', attempts = 10",
    );
    expect((await get("/ops/api/messages?limit=2")).body).toEqual({
      items: [
        expect.objectContaining({ state: "needs_review", reason: "TypeError", attempts: 10 }),
        expect.objectContaining({ state: "needs_review" }),
      ],
      next: expect.any(String),
    });
    expect((await get("/ops/api/messages/requeueable?reason=TypeError")).body.count).toBe(3);
    const asked = { reason: "TypeError", count: 2, why: WHY };
    expect((await send("/ops/api/messages/requeue", asked)).body).toMatchObject({
      requeued: 2,
      left: 1,
    });
    const waiting = await get("/ops/api/messages?state=waiting");
    expect(waiting.body.items).toHaveLength(2);
    expect(waiting.body.items[0]).toMatchObject({ attempts: 0, reason: null });
    expect(await actions(operator)).toEqual([
      expect.objectContaining({
        action: "requeue_messages",
        subject: "messages with TypeError",
        affected: 2,
      }),
    ]);
  });

  test("are listed page by page, by whether they wait, are under way, or done", async () => {
    const { inbox, get } = await anOperator();
    for (let n = 0; n < 5; n++) await inbox.deliver(anInvoiceEvent());
    await inbox.rows("update outbox set published_at = now() where id % 2 = 1");
    await inbox.rows(
      "update outbox set done_at = now() where id = (select min(id) from outbox where published_at is not null)",
    );
    const counts = { waiting: 2, not_done: 2, done: 1, needs_review: 0 };
    for (const [state, count] of Object.entries(counts)) {
      const seen: number[] = [];
      let after = "";
      for (let pages = 0; pages < 9; pages++) {
        const { body } = await get(`/ops/api/messages?state=${state}&limit=1${after}`);
        seen.push(...body.items.map(({ id }: { id: number }) => id));
        if (body.next === null) break;
        after = `&after=${body.next}`;
      }
      expect(seen).toHaveLength(count);
      expect(seen).toEqual(seen.toSorted((a, b) => b - a));
    }
  });
});

describe("a discrepancy", () => {
  test("is resolved with a note, once, and is on record", async () => {
    const operator = await anOperator();
    await contradict(operator);
    await contradict(operator);
    const { get, send } = operator;
    const open = (await get("/ops/api/discrepancies?open=true")).body.items;
    expect(open).toHaveLength(2);
    expect(open[0]).toMatchObject({
      kind: "paid_after_void",
      resolved_at: null,
      detail: { amount: 4200 },
    });
    const path = `/ops/api/discrepancies/${open[0].id}/resolve`;
    expect((await send(path, { note: "refunded by hand" })).body).toEqual({ resolved: 1 });
    expect((await send(path, { note: "again" })).body).toEqual({ resolved: 0 });
    expect((await send("/ops/api/discrepancies/999/resolve", { note: "x" })).status).toBe(404);
    expect((await get("/ops/api/discrepancies?open=true")).body.items).toHaveLength(1);
    const [resolved] = (await get("/ops/api/discrepancies?open=false")).body.items;
    expect(resolved).toMatchObject({ id: open[0].id, resolution: "refunded by hand" });
    expect((await get("/ops/api/discrepancies?kind=void_after_paid")).body.items).toEqual([]);
    expect(await actions(operator)).toEqual([
      {
        operator: "Ada",
        via: "token",
        action: "resolve_discrepancy",
        subject: `discrepancy ${open[0].id}`,
        why: "refunded by hand",
        affected: 1,
      },
    ]);
  });

  test.each([{ note: "" }, { note: "  " }, {}, { note: 1 }, { note: "x".repeat(501) }, []])(
    "is not resolved with %j",
    async (body) => {
      const operator = await anOperator();
      await contradict(operator);
      expect((await operator.send("/ops/api/discrepancies/1/resolve", body)).status).toBe(400);
      expect(
        await operator.inbox.rows("select 1 from discrepancies where resolved_at is null"),
      ).toHaveLength(1);
    },
  );

  test.each(["x", "0", "-1", "1.5", "99999999999999999999"])("has no id %s", async (id) => {
    const { send } = await anOperator();
    expect((await send(`/ops/api/discrepancies/${id}/resolve`, { note: "x" })).status).toBe(400);
  });
});

test("a discrepancy that was found again since it was seen stays open", async () => {
  const operator = await anOperator();
  await contradict(operator);
  const { get, send, inbox } = operator;
  const [seen] = (await get("/ops/api/discrepancies")).body.items;
  const path = `/ops/api/discrepancies/${seen.id}/resolve`;
  await inbox.rows("update discrepancies set found_at = found_at + interval '1 s'");
  const asked = { note: "refunded", found_at: seen.found_at };
  expect((await send(path, asked)).status).toBe(409);
  const [now] = (await get("/ops/api/discrepancies")).body.items;
  expect(now.resolved_at).toBe(null);
  const again = { note: "refunded", found_at: now.found_at };
  expect((await send(path, again)).body).toEqual({ resolved: 1 });
});

test("gaps are listed, the newest first, page after page, also those of one moment", async () => {
  const { inbox, get } = await anOperator();
  await inbox.rows(`insert into sweep_gaps (endpoint, event_id, event_type, created_at, found_at, run_id)
    select 'billing', 'evt_' || n, 'invoice.paid', now() - interval '2 hours',
      now() - (n / 3) * interval '1 min', 1 from generate_series(1, 8) n`);
  const seen: string[] = [];
  let after = "";
  for (let pages = 0; pages < 9; pages++) {
    const { body } = await get(`/ops/api/gaps?limit=2${after}`);
    seen.push(...body.items.map((gap: { event_id: string }) => gap.event_id));
    if (body.next === null) break;
    after = `&after=${body.next}`;
  }
  expect(seen).toEqual([2, 1, 5, 4, 3, 8, 7, 6].map((n) => `evt_${n}`));
});

test("messages that need review are listed by their reason", async () => {
  const { inbox, get } = await anOperator();
  for (let n = 0; n < 3; n++) await inbox.deliver(anInvoiceEvent());
  await inbox.rows(
    `update outbox set parked_at = now(), last_error = case when id % 2 = 0 then 'A' else 'B' end`,
  );
  const { body } = await get("/ops/api/messages?reason=A");
  expect(body.items.length).toBeGreaterThan(0);
  for (const { reason } of body.items) expect(reason).toBe("A");
  expect((await get("/ops/api/messages?reason=A&state=done")).status).toBe(400);
});

test("actions are listed, the newest first, page after page", async () => {
  const operator = await anOperator();
  await parked(operator, 3);
  for (let n = 1; n <= 3; n++) {
    const asked = { event_id: `evt_${UNUSABLE}${n}`, count: 1, why: `${n}` };
    await operator.send("/ops/api/events/requeue", asked);
  }
  const first = (await operator.get("/ops/api/actions?limit=2")).body;
  expect(first.items.map(({ why }: { why: string }) => why)).toEqual(["3", "2"]);
  const second = (await operator.get(`/ops/api/actions?limit=2&after=${first.next}`)).body;
  expect(second.items.map(({ why }: { why: string }) => why)).toEqual(["1"]);
  expect(second.next).toBe(null);
  const { body } = await operator.get(`/ops/api/events/billing/evt_${UNUSABLE}2`);
  expect(body.actions).toEqual([expect.objectContaining({ why: "2", operator: "Ada" })]);
});

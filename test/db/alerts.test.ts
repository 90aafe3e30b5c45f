/** Whom ticks tell what went wrong: through the Worker's own cron, to a real server. */
import { expect, test } from "vitest";
import { anInvoiceEvent, logLines } from "../worker/testbed.ts";
import { waits } from "../worker/waiting.ts";
import { aListener, needsReview, states, TICK, watched } from "./watched.ts";

test("an alert is told once, and its all-clear once, however many ticks there are", async () => {
  const { told, url } = await aListener();
  const system = await watched({ ALERT_URL: url });
  await system.cron();
  expect(told).toEqual([]);
  await needsReview(system);
  for (let n = 0; n < 3; n++) await system.cron();
  expect(told).toEqual([
    {
      alert: "review_grew",
      state: "firing",
      level: 1,
      summary: "To review: 1 event (PermanentError:amount_paid_unusable).",
      todo: expect.stringContaining("requeue"),
      text: expect.stringMatching(/^stripe-inbox ALERT review_grew: To review: 1 event \(/),
    },
  ]);
  await system.inbox.rows("delete from webhook_inbox");
  for (let n = 0; n < 3; n++) await system.cron();
  expect(states(told)).toEqual(["review_grew firing", "review_grew ok"]);
  expect(told[1]).toMatchObject({ level: 0, todo: null, text: expect.stringContaining(" ok ") });
});

test("each kind of trouble has its alert, and what to do", async () => {
  const { told, url } = await aListener();
  const queue = { sendBatch: () => Promise.reject(new TypeError("down")) };
  const system = await watched({ ALERT_URL: url, OUTBOX_QUEUE: queue, PROCESSING: "paused" });
  const { inbox } = system;
  await inbox.deliver(anInvoiceEvent());
  const id = "in_contradicted";
  await inbox.deliver(anInvoiceEvent("invoice.voided", { id, status: "void" }));
  await inbox.deliver(anInvoiceEvent("invoice.paid", { id }));
  await needsReview(system);
  await waits(inbox);
  await inbox.rows(
    "update webhook_inbox set received_at = now() - interval '16 min' where processed_at is null and parked_at is null",
  );
  await inbox.rows("update outbox set created_at = now() - interval '16 min'");
  await inbox.rows(`insert into sweep_runs (account, window_from, window_to, started_at, available_at, last_error)
    values ('own', now() - interval '3 day', now() - interval '2 day', now() - interval '2 day', now() + interval '1 hour', 'Stripe:401')`);
  await system.cron(TICK, { STRIPE_API_KEY: "sk_test_x", STRIPE_API_URL: "http://127.0.0.1:1" });
  expect(states(told)).toEqual([
    "backlog_too_old firing",
    "review_grew firing",
    "discrepancies_grew firing",
    "outbox_stuck firing",
    "sweep_overdue firing",
  ]);
  for (const { todo } of told) expect(todo).toMatch(/\w/);
  expect(told.map(({ summary }) => summary)).toEqual([
    "Events wait: 1, the oldest for 16 min.",
    expect.stringContaining("To review: 1 event"),
    "Open discrepancies: 1 (paid_after_void).",
    "Messages: 1 not left, the oldest for 16 min.",
    expect.stringContaining("own (Stripe:401)"),
  ]);
});

test("messages that left and are not done are stuck, too; where no queue is bound, those that wait are not", async () => {
  const { told, url } = await aListener();
  const system = await watched({ ALERT_URL: url });
  await system.inbox.deliver(anInvoiceEvent());
  await system.inbox.rows("update outbox set created_at = now() - interval '1 day'");
  await system.cron();
  expect(told).toEqual([]);
  await system.inbox.rows("update outbox set published_at = now() - interval '16 min'");
  await system.cron();
  expect(told).toEqual([
    expect.objectContaining({
      alert: "outbox_stuck",
      summary: "Messages: 1 left and not done, the oldest for 16 min.",
    }),
  ]);
});

test.each([
  { name: "backlog_too_old", setting: { ALERT_BACKLOG_MINUTES: 20 } },
  { name: "outbox_stuck", setting: { ALERT_OUTBOX_MINUTES: 20 } },
])("$name has its own limit", async ({ name, setting }) => {
  const { told, url } = await aListener();
  const system = await watched({ ALERT_URL: url, ...setting, PROCESSING: "paused" });
  await system.inbox.deliver(anInvoiceEvent());
  await system.inbox.rows("update outbox set published_at = now()");
  await waits(system.inbox);
  const become = async (minutes: number): Promise<void> => {
    const then = `now() - interval '${minutes} min'`;
    await system.inbox.rows(`update webhook_inbox set received_at = ${then}`);
    await system.inbox.rows(`update outbox set published_at = ${then}`);
    await system.cron();
  };
  await become(19);
  expect(states(told)).not.toContain(`${name} firing`);
  await become(21);
  expect(states(told)).toContain(`${name} firing`);
});
test("nobody is told where there is no ALERT_URL: the log has it, once, and no log has the URL", async () => {
  const silent = await watched();
  await needsReview(silent);
  const lines = await logLines(async () => {
    for (let n = 0; n < 2; n++) await silent.cron();
  });
  expect(lines.filter(({ message }) => message === "alert")).toEqual([
    expect.objectContaining({
      level: "error",
      name: "review_grew",
      firing: true,
      count: 1,
      told: false,
    }),
  ]);
  const { url } = await aListener(() => 500);
  const spoken = await watched({ ALERT_URL: url });
  await needsReview(spoken);
  const said = JSON.stringify(await logLines(() => spoken.cron()));
  expect(said).toContain('"error":"Alert:500"');
  expect(said).not.toContain("T0PSECRET");
  expect(JSON.stringify(await spoken.inbox.rows("select * from alert_states"))).not.toContain(
    "T0PSECRET",
  );
});

test("ticks that fail are told by the ticks themselves, whatever setting is unusable", async () => {
  const { told, url } = await aListener();
  const system = await watched({ ALERT_URL: url });
  const broken = { MAX_ATTEMPTS: "none" };
  await system.cron();
  await system.cron(TICK, broken);
  expect(told).toEqual([]);
  await system.inbox.rows("update heartbeats set completed_at = now() - interval '6 min'");
  for (let n = 0; n < 2; n++) await system.cron(TICK, broken);
  expect(told).toEqual([
    expect.objectContaining({
      alert: "ticks_failing",
      summary: "No tick has come to a good end for 6 min: InvalidSetting MAX_ATTEMPTS.",
    }),
  ]);
  await system.cron();
  expect(states(told)).toEqual(["ticks_failing firing", "ticks_failing ok"]);
});

test("an ALERT_URL that is none keeps no tick from its work, and the log names it", async () => {
  const system = await watched({ ALERT_URL: "not a URL", STRIPE_LIVEMODE: "false" });
  await waits(system.inbox);
  const lines = await logLines(() => system.cron());
  expect(lines).toContainEqual(expect.objectContaining({ message: "tick", processed: 1 }));
  expect(lines).toContainEqual(
    expect.objectContaining({ message: "watch", setting: "ALERT_URL", level: "error" }),
  );
});

/** `npm run requeue`, as an operator types it. */
import { expect, test } from "vitest";
import { idempotencyKey } from "../../src/stripe/api.ts";
import type { ApiOptions } from "../local/stripe-api.ts";
import { bookAfter, ONE_BOOKING, progress } from "../worker/disturbances.ts";
import { anInvoiceEvent, openTestbed, type Testbed } from "../worker/testbed.ts";
import { type Ran, runCli } from "./cli.ts";
import { journalRows, openOutbound } from "./outbox.ts";

const requeue = (inbox: Pick<Testbed, "databaseUrl"> | null, ...flags: string[]): Promise<Ran> =>
  runCli("requeue", inbox, ...flags);

test("a parked event whose cause is mended is requeued by its id, and processed by the next tick", async () => {
  let mended = false;
  const endpoints = bookAfter(() => {
    if (!mended) throw new TypeError("It is broken.");
  });
  const inbox = await openTestbed({ endpoints, env: { MAX_ATTEMPTS: "1" } });
  const event = anInvoiceEvent();
  await inbox.deliver(event);
  mended = true;

  const ran = await requeue(inbox, "--id", event.id, "--yes", "--why", "mended");
  expect(ran).toMatchObject({ status: 0 });
  expect(ran.text).toContain("1 parked or ignored events match.");
  expect(await progress(inbox, event.id)).toMatchObject({ parked: false, attempts: 0 });
  expect(await inbox.tick()).toMatchObject({ processed: 1 });
  expect(await inbox.books()).toEqual(ONE_BOOKING);
  expect((await requeue(inbox, "--id", event.id, "--yes", "--why", "mended")).text).toContain(
    "0 parked or ignored",
  );
});

test("all of one reason are requeued, and no others", async () => {
  const inbox = await openTestbed();
  const unusable = [
    anInvoiceEvent("invoice.paid", { amountPaid: -1 }),
    anInvoiceEvent("invoice.paid", { amountPaid: -2 }),
  ];
  const unpaid = anInvoiceEvent("invoice.paid", { status: "open" });
  for (const event of [...unusable, unpaid]) await inbox.deliver(event);
  const ran = await requeue(
    inbox,
    "--reason",
    "PermanentError:amount_paid_unusable",
    "--yes",
    "--why",
    "mended",
  );
  expect(ran.text).toContain("2 are due now");
  for (const { id } of unusable) expect(await progress(inbox, id)).toMatchObject({ parked: false });
  expect(await progress(inbox, unpaid.id)).toMatchObject({ parked: true });
});

test("ignored events are requeued by their reason while their payload is there", async () => {
  const inbox = await openTestbed({ env: { STRIPE_LIVEMODE: "true" } });
  const [kept, purged] = [anInvoiceEvent(), anInvoiceEvent()];
  for (const event of [kept, purged]) await inbox.deliver(event);
  await inbox.rows("update webhook_inbox set payload = null where event_id = $1", [purged.id]);
  expect(
    (await requeue(inbox, "--ignored-reason", "livemode", "--yes", "--why", "mended")).text,
  ).toContain("1 are due");
  expect(await inbox.tick({ STRIPE_LIVEMODE: "false" })).toMatchObject({ processed: 1 });
  expect(await inbox.books()).toEqual({ ...ONE_BOOKING, inbox: 2 });
});

test("nothing is requeued unless somebody says so", async () => {
  const inbox = await openTestbed();
  const event = anInvoiceEvent("invoice.paid", { amountPaid: -1 });
  await inbox.deliver(event);
  const unasked = await requeue(inbox, "--id", event.id);
  expect(unasked).toMatchObject({ status: 1 });
  expect(unasked.text).toContain("add --yes");
  expect(await progress(inbox, event.id)).toMatchObject({ parked: true });
});

test.each([
  ["no selection", ["--yes", "--why", "mended"]],
  ["two selections", ["--id", "evt_1", "--reason", "x", "--yes", "--why", "y"]],
  ["no why", ["--id", "evt_1", "--yes"]],
  ["an unknown flag", ["--all"]],
])("%s is refused, with the help", async (_, flags) => {
  const ran = await requeue(await openTestbed(), ...flags);
  expect(ran).toMatchObject({ status: 1 });
  expect(ran.text).toContain("npm run requeue -- --id");
});

test("a database that is not named, or not there, is a clear error without its password", async () => {
  expect((await requeue(null, "--id", "evt_1")).text).toContain("DATABASE_URL");
  const inbox = await openTestbed();
  const url = new URL(inbox.databaseUrl);
  Object.assign(url, { password: "hunter2", port: "1" });
  const ran = await requeue({ ...inbox, databaseUrl: url.href }, "--id", "evt_1");
  expect(ran).toMatchObject({ status: 1 });
  expect(ran.text).toContain("DatabaseUnavailable");
  expect(ran.text).not.toContain("hunter2");
});

test("an idempotency key names the event and the action, and nothing else makes one", () => {
  expect(idempotencyKey("evt_1", "update-customer-metadata")).toBe(
    "webhook:evt_1:update-customer-metadata",
  );
  expect(() => idempotencyKey("evt_1", "Update customer")).toThrow(RangeError);
});

test("of an id that leaves no room, the key holds a hash: another id, another key", () => {
  const keys = ["x", "y"].map((end) => idempotencyKey("e".repeat(250) + end, "update"));
  expect(new Set(keys).size).toBe(2);
  for (const key of keys) expect(key).toMatch(/^webhook:sha256-[0-9a-f]{64}:update$/);
  expect(idempotencyKey("e".repeat(240), "update")).toContain("e".repeat(240));
});

test("a message that could not be sent, and one whose call needs review, are sent again", async () => {
  const outbound = await openOutbound({ env: { MAX_ATTEMPTS: "1" }, api: { fault: failOnce() } });
  const { inbox, queue, api } = outbound;
  queue.before = () => Promise.reject(new TypeError("The queue is full."));
  await inbox.deliver(anInvoiceEvent());
  queue.before = () => Promise.resolve();
  expect(
    (await requeue(inbox, "--message-reason", "TypeError", "--yes", "--why", "mended")).text,
  ).toContain("1 are due now");
  await inbox.tick();
  await outbound.consume(queue.messages);
  expect(await journalRows(inbox)).toMatchObject([{ state: "parked", last_error: "Stripe:400" }]);
  expect((await requeue(inbox, "--message", "1", "--yes", "--why", "mended")).text).toContain(
    "1 are due now",
  );
  await inbox.tick();
  await outbound.consume(queue.messages.slice(1));
  expect(await journalRows(inbox)).toMatchObject([{ state: "done" }]);
  expect(api.calls).toHaveLength(2);
  expect((await requeue(inbox, "--message", "1", "--yes", "--why", "mended")).text).toContain(
    "0 messages match",
  );
  expect(await requeue(inbox, "--message", "x", "--yes", "--why", "mended")).toMatchObject({
    status: 1,
  });
});

test("a call that may have happened is not made anew because it was parked under another name", async () => {
  const outbound = await openOutbound({
    api: { fault: ({ n }) => (n === 1 ? "lose the answer" : null) },
  });
  const { inbox, queue, api } = outbound;
  await inbox.deliver(anInvoiceEvent());
  await outbound.consume(queue.messages);
  await inbox.rows(`update call_journal set available_at = now(),
    first_called_at = now() - interval '21 hours'`);
  await outbound.consume(queue.messages, { undelivered: true });
  expect((await requeue(inbox, "--message", "1", "--yes", "--why", "mended")).text).toContain(
    "1 are due now",
  );
  await inbox.tick();
  await outbound.consume(queue.messages.slice(1));
  expect(await journalRows(inbox)).toMatchObject([{ state: "parked", last_error: "Uncertain" }]);
  expect(api.calls).toHaveLength(1);

  expect(
    (await requeue(inbox, "--message-reason", "Uncertain", "--yes", "--why", "mended")).text,
  ).toContain("1 are");
  await inbox.tick();
  await outbound.consume(queue.messages.slice(2));
  expect(await journalRows(inbox)).toMatchObject([{ state: "done" }]);
});

test("a message that vanished on its way is sent again, by its id or with all that left long ago", async () => {
  const outbound = await openOutbound();
  const { inbox, queue } = outbound;
  for (const event of [anInvoiceEvent(), anInvoiceEvent(), anInvoiceEvent()]) {
    await inbox.deliver(event);
  }
  await outbound.consume(queue.messages.slice(2));
  await inbox.rows("update outbox set published_at = now() - interval '5 days' where id > 1");
  expect((await requeue(inbox, "--not-done", "96", "--yes", "--why", "mended")).text).toContain(
    "1 are due now",
  );
  expect((await requeue(inbox, "--message", "1", "--yes", "--why", "mended")).text).toContain(
    "1 are due now",
  );
  expect(await inbox.tick()).toMatchObject({ published: 2 });
  await outbound.consume(queue.messages.slice(3));
  const rows = await inbox.rows("select done_at is not null as done from outbox");
  expect(rows).toEqual([{ done: true }, { done: true }, { done: true }]);
});

test("a call that waits to be tried again need not wait, once a person says so", async () => {
  const limited = { status: 429, retryAfterSeconds: 3_000 };
  const outbound = await openOutbound({ api: { fault: ({ n }) => (n === 1 ? limited : null) } });
  const { inbox, queue } = outbound;
  await inbox.deliver(anInvoiceEvent());
  await outbound.consume(queue.messages);
  expect((await requeue(inbox, "--not-done", "0", "--yes", "--why", "mended")).text).toContain(
    "1 are due now",
  );
  await inbox.tick();
  expect(await outbound.consume(queue.messages.slice(1))).toEqual(["ack"]);
  expect(await journalRows(inbox)).toMatchObject([{ state: "done" }]);
});

test("a message that could not be read is sent again, and has its effect, once the code is right", async () => {
  const outbound = await openOutbound();
  const { inbox, queue } = outbound;
  await inbox.deliver(anInvoiceEvent());
  const body = { ...Object(queue.messages[0]?.body), event_type: "Misspelt" };
  await outbound.consume([{ body }]);
  expect(
    (await requeue(inbox, "--message-reason", "Unreadable", "--yes", "--why", "mended")).text,
  ).toContain("1 are");
  await inbox.tick();
  await outbound.consume(queue.messages.slice(1));
  expect(await journalRows(inbox)).toMatchObject([{ state: "done" }]);
});

function failOnce(): NonNullable<ApiOptions["fault"]> {
  return ({ n }) => (n === 1 ? { status: 400 } : null);
}

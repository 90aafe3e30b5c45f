/** A connection that is lost, refused or silent costs time, and neither a booking nor a second one. */
import { sql } from "drizzle-orm";
import { describe, expect, inject, test } from "vitest";
import { freePort } from "../local/ports.ts";
import { type Message, startProxy } from "../local/proxy.ts";
import {
  bookAfter,
  deliverUntil,
  ONE_BOOKING,
  progress,
  untilSomeoneWaits,
} from "../worker/disturbances.ts";
import { type Answer, anInvoiceEvent, openTestbed } from "../worker/testbed.ts";

const EMPTY = { inbox: 0, invoices: 0, entries: 0, messages: 0, discrepancies: 0 };
/** The ten seconds in which an answer comes, and one for a slow machine. */
const IN_TIME_MS = 11_000;

describe.each(["on", "off"])("with PIPELINE=%s", (PIPELINE) => {
  const env = { PIPELINE };

  test("a backend that is terminated in the middle of a handler leaves nothing behind", async () => {
    const endpoints = bookAfter((tx, call) => call === 1 && tx.execute(sql`select pg_sleep(60)`));
    const inbox = await openTestbed({ endpoints, env });
    const event = anInvoiceEvent();
    const delivery = inbox.deliver(event);
    await untilSomeoneWaits(inbox, "PgSleep");
    await inbox.rows(`select pg_terminate_backend(pid) from pg_stat_activity
      where datname = current_database() and application_name = 'stripe-inbox'`);
    expect(await delivery).toMatchObject({ status: 503, outcome: "unavailable" });
    expect(await inbox.books()).toEqual(EMPTY);
    expect(await inbox.deliver(event)).toMatchObject({ status: 200, outcome: "processed" });
    expect(await inbox.books()).toEqual(ONE_BOOKING);
  });

  test("a handler that catches the loss of its connection does not turn it into a success", async () => {
    const endpoints = bookAfter((tx, call) =>
      call === 1
        ? tx.execute(sql`select pg_terminate_backend(pg_backend_pid())`).catch(() => undefined)
        : undefined,
    );
    const inbox = await openTestbed({ endpoints, env });
    const event = anInvoiceEvent();
    expect(await inbox.deliver(event)).toMatchObject({ status: 503, outcome: "unavailable" });
    expect(await inbox.books()).toEqual(EMPTY);
    expect(await inbox.deliver(event)).toMatchObject({ status: 200, outcome: "processed" });
    expect(await inbox.books()).toEqual(ONE_BOOKING);
  });
});

test("a refused connection is a 503 at once", async () => {
  const port = await freePort();
  const inbox = await openTestbed({
    route: () => `postgres://postgres@127.0.0.1:${port}/postgres`,
  });
  const started = Date.now();
  expect(await inbox.deliver(anInvoiceEvent())).toMatchObject({ status: 503 });
  expect(Date.now() - started).toBeLessThan(5_000);
});

describe.concurrent("a database that falls silent", () => {
  test("before it greets: the redelivery finds the event new", async () => {
    const { again, row } = await deliverInto(({ from }) => from === "server");
    expect(again).toMatchObject({ outcome: "processed" });
    expect(row).toMatchObject({ attempts: 1, duplicates: 0 });
  });

  test("before the answer to BEGIN: the event is free again when its session has idled out", async () => {
    const { again } = await deliverInto((message) => isTag(message, "BEGIN"));
    expect(again).toMatchObject({ outcome: "processed" });
  });

  test("before the answer to COMMIT: the redelivery finds it done", async () => {
    const { again, row } = await deliverInto((message) => isTag(message, "COMMIT"));
    expect(again).toMatchObject({ outcome: "duplicate" });
    expect(row).toMatchObject({ attempts: 1, duplicates: 1 });
  });
});

function isTag({ from, type, bytes }: Message, tag: string): boolean {
  return from === "server" && type === "C" && bytes.includes(`${tag}\0`);
}

/** A first delivery into a silence that begins at this message, and what its repetitions come to. */
async function deliverInto(
  silentAt: (message: Message) => boolean,
): Promise<{ again: Answer; row: Record<string, unknown> }> {
  await using proxy = await startProxy(inject("postgresUrl"), {
    fate: (message) => (message.connection === 1 && silentAt(message) ? "silence" : "pass"),
  });
  const inbox = await openTestbed({ route: proxy.route });
  const event = anInvoiceEvent();
  const started = Date.now();
  const first = await inbox.deliver(event);
  expect(Date.now() - started).toBeLessThan(IN_TIME_MS);
  expect(first).toMatchObject({ status: 503, outcome: "unavailable" });
  const again = await deliverUntil(inbox, event, 200);
  expect(await inbox.books()).toEqual(ONE_BOOKING);
  return { again, row: await progress(inbox, event.id) };
}

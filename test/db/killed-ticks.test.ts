/** Cut after any message of its conversation, a tick or an async delivery comes to the same books. */
import { expect, test } from "vitest";
import type { StripeEvent } from "../local/events.ts";
import { deliverUntil } from "../worker/disturbances.ts";
import { anInvoiceEvent } from "../worker/testbed.ts";
import { waits } from "../worker/waiting.ts";
import { type CuttableReceiver, openCuttable } from "./cutting.ts";

interface Played {
  readonly event: StripeEvent;
  /** Where its conversation was cut; null: nowhere. */
  readonly cut: unknown;
}

const BOOKED = { status: "paid", entries: 1, messages: 2, outcome: "processed", parked_at: null };

/** The first was undisturbed. A cut may cost an event one attempt, and nothing else. */
async function expectTheSameBooks(
  { books }: CuttableReceiver,
  events: readonly Played[],
  attempts: number,
): Promise<void> {
  const all = await books();
  const [expected] = events.map(({ event }) => all.get(event.id));
  expect(expected).toMatchObject({ attempts, rest: BOOKED });
  for (const { event, cut } of events) {
    const became = all.get(event.id);
    expect(became?.rest, JSON.stringify(cut)).toEqual(expected?.rest);
    expect(became?.attempts, JSON.stringify(cut)).toBeLessThanOrEqual(attempts + 1);
  }
}

const TIMEOUT = { timeout: 120_000 };

test("a tick with three events, the second of which fails at first", TIMEOUT, async () => {
  const receiver = await openCuttable({ CONCURRENCY: "1" });
  const fine: Played[] = [];
  const failing: Played[] = [];
  const threeWait = async (cut: unknown) => {
    await receiver.setAside();
    for (const [index, kind] of [fine, failing, fine].entries()) {
      const event = await waits(receiver, { availableIn: index - 30 });
      if (kind === failing) receiver.failing.add(event.id);
      kind.push({ event, cut });
    }
  };

  await threeWait(null);
  const places = await receiver.placesToCut(() => receiver.inbox.tick());
  expect(new Set(places.map(({ connection }) => connection))).toEqual(new Set([1, 2, 3]));
  expect(places.length).toBeGreaterThan(200);
  for (const cut of places) {
    await threeWait(cut);
    const reached = await receiver.cutAt(cut, () => receiver.inbox.tick());
    expect(reached, JSON.stringify(cut)).toBe(true);
  }
  await receiver.finish();
  await expectTheSameBooks(receiver, fine, 1);
  await expectTheSameBooks(receiver, failing, 2);
});

test.each([
  ["succeeds", 1],
  ["fails at first", 2],
])("an async delivery, whose processing behind the answer %s", TIMEOUT, async (_, attempts) => {
  const receiver = await openCuttable({ RECEIVE_MODE: "async" });
  const played: Played[] = [];
  const arrives = (cut: unknown) => {
    const event = anInvoiceEvent();
    if (attempts > 1) receiver.failing.add(event.id);
    played.push({ event, cut });
    return () => deliverUntil(receiver.inbox, event, 200);
  };

  const places = await receiver.placesToCut(arrives(null));
  expect(places.length).toBeGreaterThan(50);
  for (const cut of places) {
    expect(await receiver.cutAt(cut, arrives(cut)), JSON.stringify(cut)).toBe(true);
  }
  await receiver.finish();
  await expectTheSameBooks(receiver, played, attempts);
});

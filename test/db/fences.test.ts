/** Who works on a claim that has been overtaken changes nothing, whatever overtook it. */
import { expect, test } from "vitest";
import { parkCrashed } from "../../src/inbox/claim.ts";

import { PermanentError } from "../../src/inbox/retry.ts";
import type { Claim } from "../../src/inbox/transitions.ts";
import { bookAfter, ONE_BOOKING, progress } from "../worker/disturbances.ts";
import { anInvoiceEvent, openTestbed, type Testbed } from "../worker/testbed.ts";
import { waits } from "../worker/waiting.ts";
import { type Holder, openHolder, timePasses, wholeInbox } from "./holders.ts";
import { requeueAll } from "./requeued.ts";

const timeouts = { lockTimeoutMs: 10_000, statementTimeoutMs: 30_000 };
const books = bookAfter(() => undefined);
const fails = bookAfter(() => Promise.reject(new TypeError("It fails.")));
const refuses = bookAfter(() => Promise.reject(new PermanentError("never")));

interface Scene {
  readonly inbox: Testbed;
  readonly other: Holder;
  readonly event: ReturnType<typeof anInvoiceEvent>;
  readonly claim: Claim;
}

async function parkAsCrashed({ other }: Scene): Promise<void> {
  expect(await parkCrashed(other.db, 1, timeouts)).toBe(1);
}

/** What may happen to a row whose lease is over while its holder is not heard of. */
const overtaking: Record<string, (scene: Scene) => Promise<unknown>> = {
  "another claimed it": ({ other }) => other.claimOne(),
  "another claimed and processed it": async ({ other }) => {
    expect(await other.work(await other.claimOne(), books)).toEqual({ outcome: "processed" });
  },
  "another claimed it and failed": async ({ other }) => {
    expect(await other.work(await other.claimOne(), fails)).toMatchObject({ outcome: "failed" });
  },
  "another claimed and parked it": async ({ other }) => {
    const worked = await other.work(await other.claimOne(), refuses);
    expect(worked).toMatchObject({ outcome: "needs_review" });
  },
  "it was given back": ({ other, claim }) => other.giveBack([claim]),
  "it was parked as crashed": parkAsCrashed,
  "it was parked as crashed and requeued": async (scene) => {
    await parkAsCrashed(scene);
    expect(await requeueAll(scene.other.db, { reason: "Crashed" })).toBe(1);
  },
  "an operator set it back": ({ inbox }) =>
    inbox.rows(`update webhook_inbox set attempts = 0, fence = fence + 1, parked_at = null`),
  "a sync delivery processed it": async ({ inbox, event }) => {
    expect(await inbox.deliver(event)).toMatchObject({ outcome: "processed" });
  },
  "a sync delivery of it failed": async ({ inbox, event }) => {
    const { databaseUrl } = inbox;
    const failing = await openTestbed({ databaseUrl, endpoints: fails });
    expect(await failing.deliver(event)).toMatchObject({ outcome: "failed" });
  },
};

/** What a holder may do when it is heard of again; each is told that it changed nothing. */
const comingBack: Record<string, (holder: Holder, claim: Claim) => Promise<unknown>> = {
  "works on it": async (holder, claim) => {
    let calls = 0;
    const endpoints = bookAfter((_, call) => (calls = call));
    expect(await holder.work(claim, endpoints)).toEqual({ outcome: "taken" });
    expect(calls).toBe(0);
  },
  "records a failure of it": async (holder, claim) => {
    expect(await holder.recordFailure(claim)).toBe(false);
  },
  "gives it back": (holder, claim) => holder.giveBack([claim]),
};

test.each(Object.entries(overtaking))(
  "after %s, its old holder changes nothing",
  async (_, overtake) => {
    const inbox = await openTestbed();
    const event = await waits(inbox, { event: anInvoiceEvent() });
    const holder = await openHolder(inbox);
    const other = await openHolder(inbox);
    const claim = await holder.claimOne();
    await timePasses(inbox);
    await overtake({ inbox, other, event, claim });

    const before = await Promise.all([wholeInbox(inbox), inbox.books()]);
    for (const [what, comeBack] of Object.entries(comingBack)) {
      await comeBack(holder, claim);
      expect(await Promise.all([wholeInbox(inbox), inbox.books()]), what).toEqual(before);
    }

    await requeueAll(other.db, { eventId: event.id });
    await timePasses(inbox);
    await inbox.tick();
    expect(await progress(inbox, event.id)).toMatchObject({ outcome: "processed" });
    expect(await inbox.books()).toEqual(ONE_BOOKING);
  },
);

test("a holder whose lease is over, and whom nobody overtook, still has its claim", async () => {
  const inbox = await openTestbed();
  await waits(inbox);
  const holder = await openHolder(inbox);
  const claim = await holder.claimOne();
  await timePasses(inbox);
  expect(await holder.work(claim, books)).toEqual({ outcome: "processed" });

  const failing = await waits(inbox);
  const next = await holder.claimOne();
  await timePasses(inbox);
  expect(await holder.recordFailure(next)).toBe(true);
  expect(await progress(inbox, failing.id)).toMatchObject({ last_error: "TypeError" });
});

test("of several claims given back, those that were overtaken stay as they are", async () => {
  const inbox = await openTestbed();
  const holder = await openHolder(inbox);
  const mine = await waits(inbox);
  const theirs = await waits(inbox);
  const claims = await holder.claim();
  await inbox.rows("update webhook_inbox set fence = fence + 1 where event_id = $1", [theirs.id]);
  await holder.giveBack(claims);
  expect(await progress(inbox, mine.id)).toMatchObject({ attempts: 0 });
  expect(await progress(inbox, theirs.id)).toMatchObject({ attempts: 1, last_error: null });
});

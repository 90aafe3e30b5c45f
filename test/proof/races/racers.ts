/**
 * Who can meet over one event or one invoice: the product's own mechanisms, each on a connection of
 * its own, saying what it told its caller.
 */
import type { Connection } from "../../../src/db/connect.ts";
import { nothingToFetch } from "../../local/nothing-to-fetch.ts";
import { claimDue, parkCrashed, release } from "../../../src/inbox/claim.ts";
import { processClaim, type Processed } from "../../../src/inbox/process.ts";
import { receiveAsync, type Received, receiveSync } from "../../../src/inbox/receive.ts";
import { deleteTombstones, purgePayloads } from "../../../src/inbox/retention.ts";
import { requeueEvents } from "../../../src/operate/actions.ts";
import type { EndpointRules } from "../../../src/inbox/rules.ts";
import type { Selection } from "../../../src/inbox/selection.ts";
import type { Claim, Delivery } from "../../../src/inbox/transitions.ts";
import { eventFromInbox } from "../../../src/stripe/verify.ts";
import type { StripeEvent } from "../../local/events.ts";
import { handlersWithEffect } from "../workers/effect.ts";

/** What somebody was told of an event. */
export interface Word {
  readonly eventId: string;
  readonly outcome: Received["outcome"] | Processed["outcome"] | "threw";
  /** The class or SQLSTATE of what went wrong. */
  readonly error?: string | undefined;
  /** Whether a failure is on record. */
  readonly recorded?: boolean;
}

export interface Racer {
  readonly run: (db: Connection, tell: (word: Word) => void) => Promise<void>;
  /** What Stripe delivers again until it is answered with a 2xx. */
  readonly delivers?: StripeEvent;
  /** It comes again, for what it passed by because others held it. */
  readonly recurs?: true;
}

export const MAX_ATTEMPTS = 10;
export const RETENTION_DAYS = 30;
export const TOMBSTONE_DAYS = 90;

/** Longer than any race takes: nobody is to give up by the clock. */
const LONG_MS = 600_000;
const LEASE_SECONDS = 3_600;

/** Nobody waits in vain but by the order of statements. */
export const timeouts = { lockTimeoutMs: 60_000, statementTimeoutMs: 120_000 } as const;
const retry = { maxAttempts: MAX_ATTEMPTS, backoffCapSeconds: 300 } as const;

const endpoint: EndpointRules = {
  name: "billing",
  livemode: null,
  accounts: "own",
  handlers: handlersWithEffect,
};
const endpoints = new Map([[endpoint.name, endpoint]]);

export function deliveryOf(event: StripeEvent): Delivery {
  return { endpoint, event: eventFromInbox(JSON.stringify(event), false) };
}

export function claimOf({ id }: StripeEvent, fence: number): Claim {
  return { endpoint: endpoint.name, eventId: id, fence };
}

export function syncDelivery(event: StripeEvent): Racer {
  return {
    delivers: event,
    run: async (db, tell) => {
      const policy = { ...retry, timeouts, remainingMs: () => LONG_MS };
      tell(wordOf(event.id, await receiveSync(db, deliveryOf(event), policy)));
    },
  };
}

/** With the processing behind the answer. */
export function asyncDelivery(event: StripeEvent): Racer {
  return {
    delivers: event,
    run: async (db, tell) => {
      const delivery = deliveryOf(event);
      const { received, claim } = await receiveAsync(db, delivery, LEASE_SECONDS, timeouts);
      tell(wordOf(event.id, received));
      if (claim) await work(db, claim, tell);
    },
  };
}

/** As while processing is paused: what it stores waits for a tick. */
export function storer(event: StripeEvent): Racer {
  return {
    delivers: event,
    run: async (db, tell) => {
      const { received } = await receiveAsync(db, deliveryOf(event), null, timeouts);
      tell(wordOf(event.id, received));
    },
  };
}

/** Who works on what was claimed before. */
export function holder(claim: Claim): Racer {
  return { run: (db, tell) => work(db, claim, tell) };
}

/** A tick's claim, and the processing of what it got. */
export function claimer(which: "fresh" | "suspects", limit = 10): Racer {
  return {
    run: async (db, tell) => {
      for (const claim of await claimSome(db, which, limit)) await work(db, claim, tell);
    },
  };
}

/** A tick's claim alone. */
export function bareClaimer(which: "fresh" | "suspects", limit = 10): Racer {
  return { run: async (db) => void (await claimSome(db, which, limit)) };
}

export function releaser(claims: readonly Claim[]): Racer {
  return { run: (db) => release(db, claims, timeouts) };
}

export const crashParker: Racer = {
  run: async (db) => void (await parkCrashed(db, MAX_ATTEMPTS, timeouts)),
};

export function requeuer(selection: Selection): Racer {
  const by = { operator: "racer", via: "cli", why: "to see" } as const;
  return { run: async (db) => void (await requeueEvents(db, selection, 1, by, timeouts)) };
}

export const purger: Racer = {
  recurs: true,
  run: async (db) => void (await purgePayloads(db, RETENTION_DAYS, timeouts)),
};

export const tombstoneDeleter: Racer = {
  recurs: true,
  run: async (db) => void (await deleteTombstones(db, TOMBSTONE_DAYS, timeouts)),
};

/** As a tick does, one connection alone: whatever is due is processed. */
export async function tickOnce(db: Connection): Promise<void> {
  await parkCrashed(db, MAX_ATTEMPTS, timeouts);
  for (const which of ["fresh", "suspects"] as const) {
    for (const claim of await claimSome(db, which, 10)) await work(db, claim, () => undefined);
  }
}

function claimSome(db: Connection, which: "fresh" | "suspects", limit: number) {
  return claimDue(db, which, limit, { timeouts, leaseSeconds: LEASE_SECONDS });
}

async function work(db: Connection, claim: Claim, tell: (word: Word) => void): Promise<void> {
  const policy = { ...retry, timeouts, workMs: () => LONG_MS, fetch: nothingToFetch };
  const processed = await processClaim(db, claim, endpoints, policy);
  const error = "error" in processed ? processed.error : undefined;
  tell({ eventId: claim.eventId, outcome: processed.outcome, error });
}

function wordOf(eventId: string, { outcome, error, recorded }: Received): Word {
  return { eventId, outcome, error, recorded: outcome === "failed" && recorded !== false };
}

/**
 * Who holds claims, as a tick does, but one step at a time: so that a test can let two of them, an
 * operator and Stripe meet over the same row.
 */
import { nothingToFetch } from "../local/nothing-to-fetch.ts";
import { onTestFinished } from "vitest";
import { type Connection, connect } from "../../src/db/connect.ts";
import { inOneFlight } from "../../src/db/transaction.ts";
import type { Endpoints } from "../../src/endpoints.ts";
import { claimDue, release } from "../../src/inbox/claim.ts";
import { processClaim, type Processed } from "../../src/inbox/process.ts";
import type { EndpointRules } from "../../src/inbox/rules.ts";
import * as transitions from "../../src/inbox/transitions.ts";
import type { Claim } from "../../src/inbox/transitions.ts";
import type { Testbed } from "../worker/testbed.ts";

export const LEASE_SECONDS = 120;

export interface Holder {
  readonly db: Connection;
  readonly claim: (limit?: number, which?: "fresh" | "suspects") => Promise<readonly Claim[]>;
  /** Exactly one claim, of exactly one due event. */
  readonly claimOne: () => Promise<Claim>;
  readonly work: (claim: Claim, endpoints: Endpoints) => Promise<Processed>;
  /** Puts a failure of its attempt on record; whether that changed the row. */
  readonly recordFailure: (claim: Claim) => Promise<boolean>;
  readonly giveBack: (claims: readonly Claim[]) => Promise<void>;
}

/** Opened within a test, and closed when that is over. */
export async function openHolder(
  { databaseUrl }: Pick<Testbed, "databaseUrl">,
  { lockTimeoutMs = 10_000 } = {},
): Promise<Holder> {
  const timeouts = { lockTimeoutMs, statementTimeoutMs: 30_000 };
  const db = await openConnection(databaseUrl);
  const claim: Holder["claim"] = (limit = 10, which = "fresh") =>
    claimDue(db, which, limit, { timeouts, leaseSeconds: LEASE_SECONDS });
  return {
    db,
    claim,
    claimOne: async () => {
      const claims = [...(await claim(10, "fresh")), ...(await claim(10, "suspects"))];
      const [only, ...others] = claims;
      if (!only || others.length > 0) throw new Error(`${claims.length} events were due, not one.`);
      return only;
    },
    work: (claimed, endpoints) =>
      processClaim(db, claimed, rulesWithin(endpoints), {
        timeouts,
        maxAttempts: 10,
        backoffCapSeconds: 300,
        workMs: () => 30_000,
        fetch: nothingToFetch,
      }),
    recordFailure: async (claimed) => {
      const failure = { code: "TypeError", parksAtAttempt: 10, backoffCapSeconds: 300 };
      const [recorded = []] = await inOneFlight(db, timeouts, [
        transitions.recordClaimedFailure(claimed, failure),
      ]);
      return recorded.length > 0;
    },
    giveBack: (claims) => release(db, claims, timeouts),
  };
}

/** A connection as the receiver uses it. */
export async function openConnection(databaseUrl: string): Promise<Connection> {
  const db = await connect(
    { connectionString: databaseUrl, pipeline: true },
    new AbortController().signal,
  );
  onTestFinished(() => db.close());
  return db;
}

/** Waiting rows `evt_due0001` and so on, the first the longest due. Their payloads are no events. */
export async function dueRows(inbox: Pick<Testbed, "rows">, count: number): Promise<void> {
  await inbox.rows(
    `insert into webhook_inbox (endpoint, event_id, event_type, payload, available_at)
      select 'billing', 'evt_due' || lpad(n::text, 4, '0'), 'invoice.paid', '{}',
        now() - interval '1 hour' + n * interval '1 second'
      from generate_series(1, $1::int) as n`,
    [count],
  );
}

/** As if the time of every lease and every back-off had passed. */
export async function timePasses(inbox: Pick<Testbed, "rows">): Promise<void> {
  await inbox.rows(
    `update webhook_inbox set available_at = now()
      where processed_at is null and parked_at is null`,
  );
}

/** Every row of the inbox, whole. */
export async function wholeInbox(inbox: Pick<Testbed, "rows">): Promise<unknown> {
  return inbox.rows("select * from webhook_inbox order by event_id");
}

function rulesWithin(endpoints: Endpoints): ReadonlyMap<string, EndpointRules> {
  return new Map(
    Object.entries(endpoints).map(([name, { accounts, handlers }]) => [
      name,
      { name, livemode: null, accounts, handlers },
    ]),
  );
}

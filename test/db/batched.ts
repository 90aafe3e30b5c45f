/**
 * Batches of claimed events, by hand: so that a test can do something between the claim and the
 * batch, or between the batch and what it left. And what a batch leaves to be seen.
 */
import { nothingToFetch } from "../local/nothing-to-fetch.ts";
import { onTestFinished } from "vitest";
import { type Connection, connect } from "../../src/db/connect.ts";
import { type Endpoints, endpoints as shipped } from "../../src/endpoints.ts";
import { processEach } from "../../src/inbox/apart.ts";
import { type Done, processBatch } from "../../src/inbox/batch.ts";
import { claimDue } from "../../src/inbox/claim.ts";
import { processClaim, type Processed } from "../../src/inbox/process.ts";
import type { EndpointRules } from "../../src/inbox/rules.ts";
import type { Claim } from "../../src/inbox/transitions.ts";
import type { StripeEvent } from "../local/events.ts";
import { anInvoiceEvent, type Testbed } from "../worker/testbed.ts";
import { waits } from "../worker/waiting.ts";

const timeouts = { lockTimeoutMs: 10_000, statementTimeoutMs: 30_000 };
const LEASE_SECONDS = 120;

/** What became of a batch, and the claims that it left. */
export interface Together extends Omit<Done, "left"> {
  readonly left: readonly Claim[];
}

export interface Batcher {
  readonly db: Connection;
  /** Everything that is due, the longest due first. */
  readonly claimAll: () => Promise<readonly Claim[]>;
  readonly together: (claims: readonly Claim[]) => Promise<Together>;
  /** Each in a transaction of its own, all in one flight. */
  readonly apart: (claims: readonly Claim[]) => Promise<Together>;
  readonly alone: (claim: Claim) => Promise<Processed>;
  /** Everything that is due, together; then, one by one, what was left. */
  readonly settleAll: () => Promise<Together>;
}

/** Opened within a test, and closed when that is over. One piece of work at a time. */
export async function openBatcher(
  { databaseUrl }: Pick<Testbed, "databaseUrl">,
  endpoints: Endpoints = shipped,
): Promise<Batcher> {
  const db = await connect(
    { connectionString: databaseUrl, pipeline: true, prepare: true },
    new AbortController().signal,
  );
  onTestFinished(() => db.close());
  const rules = rulesWithin(endpoints);
  const policy = {
    timeouts,
    maxAttempts: 10,
    backoffCapSeconds: 300,
    workMs: () => 30_000,
    fetch: nothingToFetch,
  };
  const claimAll = (): Promise<readonly Claim[]> =>
    claimDue(db, "fresh", 1_000, { timeouts, leaseSeconds: LEASE_SECONDS });
  const by =
    (process: typeof processBatch) =>
    async (claims: readonly Claim[]): Promise<Together> => {
      const { left, ...done } = await process(db, claims, rules, timeouts);
      return { ...done, left: left.map(({ claim }) => claim) };
    };
  const together = by(processBatch);
  const alone = (claim: Claim): Promise<Processed> => processClaim(db, claim, rules, policy);
  return {
    db,
    claimAll,
    together,
    apart: by(processEach),
    alone,
    settleAll: async () => {
      const batched = await together(await claimAll());
      for (const claim of batched.left) await alone(claim);
      return batched;
    },
  };
}

/** In how many transactions what is settled was settled; the rows of its own that each event wrote. */
export async function transactionsOf(
  inbox: Pick<Testbed, "rows">,
  events: readonly Pick<StripeEvent, "id">[],
): Promise<number> {
  const [row] = await inbox.rows(
    `select count(distinct xmin::text)::int as transactions from (
      select xmin from webhook_inbox where event_id = any($1) and processed_at is not null
      union all select xmin from ledger_entries where event_id = any($1)
      union all select xmin from outbox where payload ->> 'event_id' = any($1)) as written`,
    [events.map(({ id }) => id)],
  );
  return Number(row?.["transactions"]);
}

/** Two events that wait, this one, and two more. */
export async function waitAround(
  inbox: Pick<Testbed, "rows">,
  event: StripeEvent,
): Promise<readonly StripeEvent[]> {
  const neighbours = Array.from({ length: 4 }, () => anInvoiceEvent());
  for (const one of neighbours.toSpliced(2, 0, event)) await waits(inbox, { event: one });
  return neighbours;
}

/** Whole rows of the inbox, by event. */
export async function rowsOf(
  inbox: Pick<Testbed, "rows">,
  events: readonly Pick<StripeEvent, "id">[],
): Promise<Record<string, unknown>[]> {
  return inbox.rows("select * from webhook_inbox where event_id = any($1) order by event_id", [
    events.map(({ id }) => id),
  ]);
}

export function rulesWithin(endpoints: Endpoints): ReadonlyMap<string, EndpointRules> {
  return new Map(
    Object.entries(endpoints).map(([name, { accounts, handlers }]) => [
      name,
      { name, livemode: null, accounts, handlers },
    ]),
  );
}

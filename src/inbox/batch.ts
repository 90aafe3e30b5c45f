/**
 * Many claimed events in one transaction, in the hope that nothing goes wrong: a fraction of the
 * commits, statements and round trips. What is guaranteed is the same, because marks and effects are
 * committed together, or none is.
 *
 * Only what is decided without a question can be done so: a handler that reads would not see what
 * the events beside its own are about to write. Such an event, and one whose handler throws, is
 * taken out, and left to be processed by itself; so are all when the transaction fails.
 */
import type { Connection, Write } from "../db/connect.ts";
import { mergeWrites } from "../db/row-write.ts";
import { type Ending, inTransaction, type Timeouts } from "../db/transaction.ts";
import { log } from "../log.ts";
import { decideAll, type Decided, LOCK_TIMEOUT_MS, LONGEST_PAYLOAD } from "./decide.ts";
import type { Tried } from "./process.ts";
import { classify } from "./retry.ts";
import type { EndpointRules } from "./rules.ts";
import * as transitions from "./transitions.ts";
import type { Claim } from "./transitions.ts";

/** What became of claimed events. */
export interface Done {
  readonly processed: number;
  readonly ignored: number;
  /** Not ours any more: somebody else claimed, settled or requeued them. */
  readonly taken: number;
  /** Still claimed, and to be processed one by one; some were tried, and failed. */
  readonly left: readonly { readonly claim: Claim; readonly tried: Tried | null }[];
}

/** Two round trips, however many events there are. Never throws: what failed is left. */
export async function processBatch(
  db: Connection,
  claims: readonly Claim[],
  endpoints: ReadonlyMap<string, EndpointRules>,
  timeouts: Timeouts,
): Promise<Done> {
  const lockTimeoutMs = Math.min(timeouts.lockTimeoutMs, LOCK_TIMEOUT_MS);
  const opening = [transitions.markAll(claims, LONGEST_PAYLOAD)];
  try {
    return await inTransaction(db, { ...timeouts, lockTimeoutMs }, opening, async ([rows = []]) =>
      end(claims, await decideAll(db, claims, rows, endpoints)),
    );
  } catch (error) {
    log("info", "batch", { events: claims.length, failed: classify(error).code });
    return {
      processed: 0,
      ignored: 0,
      taken: 0,
      left: claims.map((claim) => ({ claim, tried: null })),
    };
  }
}

function end(claims: readonly Claim[], decided: readonly Decided[]): Ending<Done> {
  const writes: (readonly Write[])[] = [];
  const ignored: Write[] = [];
  const left: Done["left"][number][] = [];
  // Plain writes, too, come in an order that is the same in every batch: it keeps deadlocks rare.
  for (const { claim, decision } of decided.toSorted(byObject)) {
    if (decision.kind === "write") writes.push(decision.writes);
    else if (decision.kind === "ignore") {
      ignored.push(transitions.settleAsIgnored(claim, decision.ignored));
    } else left.push({ claim, tried: decision.tried });
  }
  return {
    commit: [
      ...(left.length > 0 ? [transitions.unmark(left.map(({ claim }) => claim))] : []),
      ...ignored,
      ...mergeWrites(writes),
    ],
    value: {
      processed: writes.length,
      ignored: ignored.length,
      taken: claims.length - decided.length,
      left,
    },
  };
}

function byObject(a: Decided, b: Decided): number {
  if (a.objectId === b.objectId) return 0;
  return a.objectId < b.objectId ? -1 : 1;
}

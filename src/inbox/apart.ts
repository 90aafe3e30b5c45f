/**
 * Many claimed events, each in a transaction of its own, and all of these in one flight: no
 * transaction waits for an answer that is on its way, as it would event by event.
 *
 * What is decided without a question can be done so, because the fence tells: while it is the one
 * that was claimed, the payload is the one that was read. A mark that finds another one fails, and
 * its transaction with it.
 */
import type { Connection, Write } from "../db/connect.ts";
import { sqlStateOf } from "../db/postgres-errors.ts";
import { eachInOneFlight, inOneFlight, type Timeouts } from "../db/transaction.ts";
import { log } from "../log.ts";
import type { Done } from "./batch.ts";
import { decideAll, type Decided, LOCK_TIMEOUT_MS, LONGEST_PAYLOAD } from "./decide.ts";
import { classify, TIMED_OUT } from "./retry.ts";
import type { EndpointRules } from "./rules.ts";
import * as transitions from "./transitions.ts";
import type { Claim } from "./transitions.ts";

/** Whatever takes longer keeps all those behind it waiting. */
const STATEMENT_TIMEOUT_MS = 2_000;

/** Two round trips, however many events there are. Never throws: what failed is left. */
export async function processEach(
  db: Connection,
  claims: readonly Claim[],
  endpoints: ReadonlyMap<string, EndpointRules>,
  timeouts: Timeouts,
): Promise<Done> {
  try {
    const reading = transitions.readClaimed(claims, LONGEST_PAYLOAD);
    const [rows = []] = await inOneFlight(db, timeouts, [reading]);
    const decided = await decideAll(db, claims, rows, endpoints);
    const marked = await markEach(db, decided, {
      lockTimeoutMs: Math.min(timeouts.lockTimeoutMs, LOCK_TIMEOUT_MS),
      statementTimeoutMs: Math.min(timeouts.statementTimeoutMs, STATEMENT_TIMEOUT_MS),
    });
    return { ...marked, taken: marked.taken + claims.length - rows.length };
  } catch (error) {
    log("info", "each", { events: claims.length, failed: classify(error).code });
    const left = claims.map((claim) => ({ claim, tried: null }));
    return { processed: 0, ignored: 0, taken: 0, left };
  }
}

async function markEach(
  db: Connection,
  decided: readonly Decided[],
  timeouts: Timeouts,
): Promise<Done> {
  const done = { processed: 0, ignored: 0, taken: 0 };
  const left: Done["left"][number][] = [];
  const begun: { readonly one: Decided; readonly writes: readonly Write[] }[] = [];
  for (const one of decided) {
    const { claim, decision } = one;
    if (decision.kind === "leave") left.push({ claim, tried: decision.tried });
    else begun.push({ one, writes: [transitions.markOrFail(claim), ...writesOf(one)] });
  }
  const ends = await eachInOneFlight(
    db,
    timeouts,
    begun.map(({ writes }) => writes),
  );
  for (const [index, { one }] of begun.entries()) {
    const end = ends[index];
    if (end === undefined) done[one.decision.kind === "ignore" ? "ignored" : "processed"] += 1;
    else if (end.at === 0 && sqlStateOf(end.error) === transitions.NOT_MARKED) done.taken += 1;
    else
      left.push({
        claim: one.claim,
        tried: isTimedOut(end.error) ? null : { error: end.error },
      });
  }
  return { ...done, left };
}

/** By itself, a statement has more of it. */
function isTimedOut(error: unknown): boolean {
  return sqlStateOf(error) === TIMED_OUT;
}

function writesOf({ claim, decision }: Decided): readonly Write[] {
  switch (decision.kind) {
    case "write":
      return decision.writes;
    case "ignore":
      return [transitions.settleAsIgnored(claim, decision.ignored)];
    case "leave":
      return [];
  }
}

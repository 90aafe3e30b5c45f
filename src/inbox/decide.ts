/**
 * What is to be done with claimed events, decided without a question to the database: so it can be
 * done together with the marks.
 */
import type { Connection, Row, Write } from "../db/connect.ts";
import { eventFromInbox, type VerifiedEvent } from "../stripe/verify.ts";
import { type Ask, withoutReading } from "./ask.ts";
import { HandlerTooSlow, NoTimeLeft } from "./handler.ts";
import type { Tried } from "./process.ts";
import { type EndpointRules, type IgnoredReason, judge } from "./rules.ts";
import type { Claim } from "./transitions.ts";

/** All payloads of a claim are in memory at once; of longer ones, nothing is decided here. */
export const LONGEST_PAYLOAD = 64 * 1024;
/** For all handlers together. */
const WORK_MS = 2_000;
/** Whoever is waited for longer keeps one event waiting, and not all that are done with it. */
export const LOCK_TIMEOUT_MS = 1_000;
/** What may be done at once. */
export const MOST_AT_ONCE = 50;

export type Decision =
  | { readonly kind: "write"; readonly writes: readonly Write[] }
  | { readonly kind: "ignore"; readonly ignored: IgnoredReason }
  /** To be processed by itself: it reads, is too long or thin; or was tried, and failed. */
  | { readonly kind: "leave"; readonly tried: Tried | null };

export interface Decided {
  readonly claim: Claim;
  /** What the event is about. */
  readonly objectId: string;
  readonly decision: Decision;
}

/**
 * @param rows claimed events, with their payloads as `stored`; null where it is longer.
 * @returns a decision for each row.
 */
export function decideAll(
  db: Connection,
  claims: readonly Claim[],
  rows: readonly Row[],
  endpoints: ReadonlyMap<string, EndpointRules>,
): Promise<readonly Decided[]> {
  const endsAt = Date.now() + WORK_MS;
  const claimOf = new Map(claims.map((claim) => [keyOf(claim.endpoint, claim.eventId), claim]));
  return withoutReading(db, async (ask) => {
    const decided: Decided[] = [];
    for (const row of rows) {
      const claim = claimOf.get(keyOf(String(row["endpoint"]), String(row["event_id"])));
      if (!claim) throw new Error("Bug! An event was read that is not claimed.");
      const decision = await decide(row, endpoints, ask, endsAt - Date.now());
      decided.push({ claim, ...decision });
    }
    return decided;
  });
}

async function decide(
  row: Row,
  endpoints: ReadonlyMap<string, EndpointRules>,
  ask: Ask,
  withinMs: number,
): Promise<Omit<Decided, "claim">> {
  const leave = { objectId: "", decision: { kind: "leave", tried: null } } as const;
  const endpoint = endpoints.get(String(row["endpoint"]));
  const event = eventIn(row);
  if (!event || !endpoint) return leave;
  const objectId = event.objectId ?? "";
  const verdict = judge(endpoint, event);
  if ("ignored" in verdict) {
    return { objectId, decision: { kind: "ignore", ignored: verdict.ignored } };
  }
  if ("thinHandler" in verdict) return leave;
  const asked = await ask(verdict.handler, event, withinMs);
  if (asked === null) return leave;
  if ("writes" in asked) return { objectId, decision: { kind: "write", writes: asked.writes } };
  return isForWantOfTime(asked.error)
    ? leave
    : { objectId, decision: { kind: "leave", tried: asked } };
}

/** Null: the payload is too long, or a row that should not be there holds none. */
function eventIn({ stored, payload_altered: altered }: Row): VerifiedEvent | null {
  if (typeof stored !== "string") return null;
  try {
    return eventFromInbox(stored, altered === true);
  } catch {
    return null;
  }
}

/** By itself, an event has more of it. */
function isForWantOfTime(error: unknown): boolean {
  return error instanceof HandlerTooSlow || error instanceof NoTimeLeft;
}

function keyOf(endpoint: string, eventId: string): string {
  return `${endpoint} ${eventId}`;
}

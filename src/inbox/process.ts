/**
 * One event, in the transaction that settles it: judged by its endpoint's rules, and worked on by
 * its handler.
 */
import type { Row, Tx } from "../db/connect.ts";
import type { Ending } from "../db/transaction.ts";
import { eventFromInbox, type VerifiedEvent } from "../stripe/verify.ts";
import { askHandler } from "./handler.ts";
import { type IgnoredReason, judge } from "./rules.ts";
import { type Delivery, settleAsIgnored } from "./transitions.ts";

export type Settled =
  | { readonly outcome: "processed" }
  | { readonly outcome: "ignored"; readonly ignored: IgnoredReason };

/** How the transaction ends in which the event was marked as processed. */
export async function workOn(
  delivery: Delivery,
  tx: Tx,
  withinMs: number,
): Promise<Ending<Settled>> {
  const verdict = judge(delivery.endpoint, delivery.event);
  if ("ignored" in verdict) {
    const { ignored } = verdict;
    return {
      commit: [settleAsIgnored(delivery, ignored)],
      value: { outcome: "ignored", ignored },
    };
  }
  const writes = await askHandler(verdict.handler, delivery.event, tx, withinMs);
  return { commit: writes, value: { outcome: "processed" } };
}

/** The handler gets exactly what is stored: for an earlier row, that is the first delivery's. */
export function storedEvent(row: Row, event: VerifiedEvent): VerifiedEvent {
  const { stored } = row;
  return typeof stored === "string"
    ? eventFromInbox(stored, row["payload_altered"] === true)
    : event;
}

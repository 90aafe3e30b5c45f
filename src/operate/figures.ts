/**
 * All that tells a person on call whether money events are flowing, in one round trip: what the
 * pages, the metrics and the alerts read. Each statement is fast on millions of rows.
 */
import type { Connection } from "../db/connect.ts";
import { inOneFlight, type Timeouts } from "../db/transaction.ts";
import { dayStatements, type LastDay, readDay } from "../inbox/hours.ts";
import { type LastHour, rateStatements, readRates } from "../inbox/rates.ts";
import { type InboxState, readState, stateStatements } from "../inbox/stats.ts";
import { type OutboxState, outboxStatements, readOutbox } from "../outbox/stats.ts";
import {
  readReconciliation,
  type Reconciliation,
  reconciliationStatements,
} from "../reconcile/stats.ts";
import { type Heartbeats, heartbeatStatements, readHeartbeats } from "./heartbeats.ts";

/** What is, now: all that alerts are about. */
export interface State {
  readonly inbox: InboxState;
  readonly outbox: OutboxState;
  readonly reconciliation: Reconciliation;
  readonly heartbeats: Heartbeats;
}

/** What came of late. */
export interface Lately {
  readonly lastHour: LastHour;
  readonly lastDay: LastDay;
}

export type Figures = State & Lately;

/** One round trip. */
export async function readFigures(db: Connection, timeouts: Timeouts): Promise<Figures> {
  const take = taker(await inOneFlight(db, timeouts, [...statements, ...latelyStatements]));
  return { ...toState(take), ...toLately(take) };
}

/** One round trip. */
export async function readNow(db: Connection, timeouts: Timeouts): Promise<State> {
  return toState(taker(await inOneFlight(db, timeouts, statements)));
}

/** What needs review alone; one round trip. */
export async function readReview(
  db: Connection,
  timeouts: Timeouts,
): Promise<Pick<State, "inbox" | "outbox">> {
  const take = taker(await inOneFlight(db, timeouts, [...stateStatements, ...outboxStatements]));
  return {
    inbox: readState(take(stateStatements.length)),
    outbox: readOutbox(take(outboxStatements.length)),
  };
}

/** One round trip. */
export async function readOutboxNow(db: Connection, timeouts: Timeouts): Promise<OutboxState> {
  return readOutbox(await inOneFlight(db, timeouts, outboxStatements));
}

/** One round trip. */
export async function readReconciliationNow(
  db: Connection,
  timeouts: Timeouts,
): Promise<Reconciliation> {
  return readReconciliation(await inOneFlight(db, timeouts, reconciliationStatements));
}

/** One round trip. */
export async function readLately(db: Connection, timeouts: Timeouts): Promise<Lately> {
  return toLately(taker(await inOneFlight(db, timeouts, latelyStatements)));
}

const latelyStatements = [...rateStatements, ...dayStatements];
const statements = [
  ...stateStatements,
  ...outboxStatements,
  ...reconciliationStatements,
  ...heartbeatStatements,
];

type Rows = Awaited<ReturnType<typeof inOneFlight>>;

function toState(take: (count: number) => Rows): State {
  return {
    inbox: readState(take(stateStatements.length)),
    outbox: readOutbox(take(outboxStatements.length)),
    reconciliation: readReconciliation(take(reconciliationStatements.length)),
    heartbeats: readHeartbeats(take(heartbeatStatements.length)),
  };
}

function toLately(take: (count: number) => Rows): Lately {
  return {
    lastHour: readRates(take(rateStatements.length)),
    lastDay: readDay(take(dayStatements.length)),
  };
}

function taker(rows: Rows): (count: number) => Rows {
  let taken = 0;
  return (count) => rows.slice(taken, (taken += count));
}

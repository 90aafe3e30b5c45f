/** Figures of a receiver with which all is well, but for what a test says. */
import type { Figures } from "../../src/operate/figures.ts";

export const NOW = new Date("2026-11-29T08:30:15Z");
const ago = (seconds: number) => new Date(NOW.getTime() - seconds * 1_000);
/** A run that ended well so long ago, unless the detail says otherwise. */
const ran = (seconds: number, detail: unknown = {}) => ({
  startedAt: ago(seconds),
  startedSecondsAgo: seconds,
  completedAt: ago(seconds),
  completedSecondsAgo: seconds,
  detail,
});
/** Of all types; half within 20 ms. */
const times = (p95: number, events = 90) => [{ type: null, events, p50: 0.02, p95, p99: p95 }];
/** Sweeps of one account. */
const swept = (seenSecondsAgo: number | null, account = "own", firstSecondsAgo = 900_000) => [
  { account, completedAt: null, seenSecondsAgo, firstSecondsAgo, error: null },
];
const many = (count: number, more = false) => ({ count, more });
const NONE = many(0);
export const HOUR = 3_600;

const HEALTHY: Figures = {
  inbox: {
    waiting: NONE,
    oldestWaitingSeconds: null,
    waitingByReason: [],
    needsReview: NONE,
    needsReviewByReason: [],
  },
  outbox: {
    waiting: NONE,
    oldestWaitingSeconds: null,
    notDone: NONE,
    oldestNotDoneSeconds: null,
    messagesInReview: [],
    callsInReview: [],
  },
  reconciliation: { sweeps: swept(HOUR), gapsLastDay: [], openDiscrepancies: [] },
  heartbeats: { tick: ran(20), retention: ran(5 * HOUR) },
  lastHour: {
    received: 99,
    duplicates: 1,
    duplicatesShare: 0.01,
    processed: 90,
    ignored: [],
    truncated: false,
    byType: [],
    byMinute: [],
    byMinuteAndType: [],
    processingSeconds: times(0.2),
  },
  lastDay: {
    countedUntil: new Date("2026-11-29T08:00:00Z"),
    received: 2_000,
    duplicates: 9,
    processed: 1_900,
    ignored: [],
    byHour: [],
    byHourAndType: [],
    byType: [],
  },
};
type Over = { readonly [K in keyof Figures]?: Partial<Figures[K]> };

/** Healthy, but for what is said. */
export function figuresWith(over: Over = {}): Figures {
  return {
    inbox: { ...HEALTHY.inbox, ...over.inbox },
    outbox: { ...HEALTHY.outbox, ...over.outbox },
    reconciliation: { ...HEALTHY.reconciliation, ...over.reconciliation },
    heartbeats: { ...HEALTHY.heartbeats, ...over.heartbeats },
    lastHour: { ...HEALTHY.lastHour, ...over.lastHour },
    lastDay: { ...HEALTHY.lastDay, ...over.lastDay },
  };
}

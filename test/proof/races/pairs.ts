/**
 * Which paths can meet over one event or one invoice, and what they find there. Each pair is raced
 * through every interleaving of its statements.
 */
import {
  asyncDelivery,
  bareClaimer,
  claimer,
  claimOf,
  crashParker,
  holder,
  MAX_ATTEMPTS,
  purger,
  type Racer,
  releaser,
  requeuer,
  storer,
  syncDelivery,
  tombstoneDeleter,
} from "./racers.ts";
import {
  type Before,
  CLAIM,
  CLAIMED,
  CLAIMED_TWICE,
  CRASHED,
  FAILING_CLAIM,
  FAILS,
  FINALIZED,
  IGNORED,
  inTurn,
  NEVER_WORKS,
  OF_ANOTHER,
  OLD,
  OVERDUE,
  PAID,
  PAID_AGAIN,
  PAID_MORE,
  PARKED,
  REFUSED,
  settled,
  stored,
  TOMBSTONE,
  UNWANTED,
  UPDATED,
  VOIDED,
  WORKS,
} from "./events.ts";

export interface Pair {
  /** The one, and the other. */
  readonly name: string;
  readonly racers: readonly [Racer, Racer];
  /** What is put in place before. */
  readonly before?: Before;
  /**
   * There would be too many interleavings, so BEGIN is no step of its own: it locks nothing and
   * reads nothing but the clock.
   */
  readonly beginsAtOnce?: true;
  /** The key of a settled event may go: who comes after that finds a new event. */
  readonly forgets?: true;
}

export const PAIRS: readonly Pair[] = [
  // One event, delivered twice at the same time.
  race("sync x sync, new", syncDelivery(PAID), syncDelivery(PAID)),
  race("sync x async, new", syncDelivery(FINALIZED), asyncDelivery(FINALIZED)),
  bigRace("async x async, new", asyncDelivery(FINALIZED), asyncDelivery(FINALIZED)),
  bigRace("sync x sync, both fail", syncDelivery(FAILS), syncDelivery(FAILS)),
  bigRace("sync, fails x sync", syncDelivery(FAILS), syncDelivery(WORKS)),
  bigRace("sync x async, both fail", syncDelivery(FAILS), asyncDelivery(FAILS)),
  bigRace("sync x sync, both parked", syncDelivery(NEVER_WORKS), syncDelivery(NEVER_WORKS)),
  race("sync x sync, ignored", syncDelivery(UNWANTED), syncDelivery(UNWANTED)),

  // Two events of one invoice.
  bigRace("sync paid x sync paid", syncDelivery(PAID), syncDelivery(PAID_AGAIN)),
  bigRace("sync paid x sync paid more", syncDelivery(PAID), syncDelivery(PAID_MORE)),
  race(
    "sync paid x sync voided",
    syncDelivery(PAID),
    syncDelivery(VOIDED),
    settled(FINALIZED, OLD),
  ),
  bigRace("sync paid x sync updated", syncDelivery(PAID), syncDelivery(UPDATED)),
  bigRace("sync voided x sync updated", syncDelivery(VOIDED), syncDelivery(UPDATED)),
  race(
    "process paid x process voided",
    holder(CLAIM),
    holder(claimOf(VOIDED, 1)),
    inTurn(settled(FINALIZED, OLD), stored(PAID, CLAIMED), stored(VOIDED, CLAIMED)),
  ),
  bigRace("process paid x sync voided", holder(CLAIM), syncDelivery(VOIDED), stored(PAID, CLAIMED)),

  // Somebody works on the event, and another delivery of it comes.
  race("process x sync", holder(CLAIM), syncDelivery(PAID), stored(PAID, CLAIMED)),
  bigRace("process x async", holder(CLAIM), asyncDelivery(PAID), stored(PAID, CLAIMED)),
  bigRace(
    "process, fails x sync",
    holder(FAILING_CLAIM),
    syncDelivery(FAILS),
    stored(FAILS, CLAIMED),
  ),
  bigRace(
    "process, fails x async",
    holder(FAILING_CLAIM),
    asyncDelivery(FAILS),
    stored(FAILS, CLAIMED),
  ),
  bigRace(
    "process, refused x sync",
    holder(claimOf(REFUSED, 1)),
    syncDelivery(REFUSED),
    stored(REFUSED, CLAIMED),
  ),
  race("claim, process x sync", claimer("fresh"), syncDelivery(FINALIZED), stored(FINALIZED)),
  bigRace("claim, process x async", claimer("fresh"), asyncDelivery(FINALIZED), stored(FINALIZED)),
  bigRace("claim, process x sync, fails", claimer("fresh"), syncDelivery(FAILS), stored(FAILS)),

  // Somebody's lease is over, and others come.
  race(
    "process, late x process",
    holder(CLAIM),
    holder(claimOf(PAID, 2)),
    stored(PAID, CLAIMED_TWICE),
  ),
  race(
    "process, late x claim, process",
    holder(claimOf(FINALIZED, 1)),
    claimer("suspects"),
    stored(FINALIZED, OVERDUE),
  ),
  bigRace(
    "process, late, fails x claim, process",
    holder(FAILING_CLAIM),
    claimer("suspects"),
    stored(FAILS, OVERDUE),
  ),
  race(
    "process, late x park crashed",
    holder(claimOf(PAID, MAX_ATTEMPTS)),
    crashParker,
    stored(PAID, CRASHED),
  ),
  race(
    "process, late, fails x park crashed",
    holder(claimOf(NEVER_WORKS, MAX_ATTEMPTS)),
    crashParker,
    stored(NEVER_WORKS, CRASHED),
  ),
  race("release x claim, process", releaser([CLAIM]), claimer("suspects"), stored(PAID, OVERDUE)),
  race("release x process", releaser([CLAIM]), holder(CLAIM), stored(PAID, CLAIMED)),
  race("release x sync", releaser([CLAIM]), syncDelivery(PAID), stored(PAID, CLAIMED)),
  race("park crashed x claim, process", crashParker, claimer("suspects"), stored(PAID, CRASHED)),
  race("park crashed x sync", crashParker, syncDelivery(PAID), stored(PAID, CRASHED)),
  race("park crashed x park crashed", crashParker, crashParker, stored(PAID, CRASHED)),

  // Two ticks; and an event that comes while one claims.
  race(
    "claim x claim, two due",
    bareClaimer("fresh", 1),
    bareClaimer("fresh", 1),
    inTurn(stored(PAID), stored(OF_ANOTHER)),
  ),
  race("store x claim, process", storer(PAID), claimer("fresh")),
  race("claim, process x claim, process", claimer("fresh"), claimer("fresh"), stored(FINALIZED)),

  // An operator requeues.
  race(
    "requeue x process, late",
    requeuer({ eventId: PAID.id }),
    holder(claimOf(PAID, MAX_ATTEMPTS - 1)),
    stored(PAID, PARKED),
  ),
  race(
    "requeue x process, parks",
    requeuer({ eventId: NEVER_WORKS.id }),
    holder(claimOf(NEVER_WORKS, 1)),
    stored(NEVER_WORKS, CLAIMED),
  ),
  race(
    "requeue x claim, process",
    requeuer({ reason: "Crashed" }),
    claimer("fresh"),
    stored(PAID, PARKED),
  ),
  race("requeue x sync", requeuer({ reason: "Crashed" }), syncDelivery(PAID), stored(PAID, PARKED)),
  race(
    "requeue x async",
    requeuer({ reason: "Crashed" }),
    asyncDelivery(PAID),
    stored(PAID, PARKED),
  ),
  race(
    "requeue x requeue",
    requeuer({ reason: "Crashed" }),
    requeuer({ eventId: PAID.id }),
    stored(PAID, PARKED),
  ),
  race(
    "requeue x park crashed",
    requeuer({ reason: "Crashed" }),
    crashParker,
    stored(PAID, CRASHED),
  ),
  race(
    "requeue ignored x sync",
    requeuer({ ignoredReason: "no_handler" }),
    syncDelivery(PAID),
    stored(PAID, IGNORED),
  ),

  // Retention.
  race("purge x sync, duplicate", purger, syncDelivery(PAID), settled(PAID, OLD)),
  race("purge x async, duplicate", purger, asyncDelivery(PAID), settled(PAID, OLD)),
  race(
    "purge x requeue ignored",
    purger,
    requeuer({ ignoredReason: "no_handler" }),
    stored(PAID, IGNORED),
  ),
  race("purge x purge", purger, purger, settled(PAID, OLD)),
  race("purge x delete", purger, tombstoneDeleter, settled(PAID, OLD)),
  {
    ...race("delete x sync", tombstoneDeleter, syncDelivery(PAID), settled(PAID, TOMBSTONE)),
    forgets: true,
  },
  {
    ...race("delete x async", tombstoneDeleter, asyncDelivery(PAID), settled(PAID, TOMBSTONE)),
    forgets: true,
  },
  race(
    "delete x requeue ignored",
    tombstoneDeleter,
    requeuer({ ignoredReason: "no_handler" }),
    stored(PAID, `${IGNORED}, payload = null`),
  ),
];

/** Of which there would be too many. */
function bigRace(...given: Parameters<typeof race>): Pair {
  return { ...race(...given), beginsAtOnce: true };
}

function race(name: string, one: Racer, other: Racer, before?: Before): Pair {
  return { name, racers: [one, other], ...(before ? { before } : {}) };
}

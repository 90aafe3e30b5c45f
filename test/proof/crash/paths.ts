/**
 * The paths that an event can take through the Worker, each as one conversation with Postgres that
 * can be had again and again: what is there before it, and what sets it off.
 * Long, because a reader is to see at once which paths there are, and which there are not.
 */
import { delivery, type DeliveryOptions, thinDelivery } from "../stage/deliveries.ts";
import type { StripeEvent } from "../../local/events.ts";
import type { ApiOptions } from "../../local/stripe-api.ts";
import {
  CALLS_IN_EFFECT,
  type Delivery,
  MESSAGES_IN_THE_QUEUE,
  type Stage,
} from "../stage/stage.ts";
import type { Failure } from "../workers/receiver.ts";

export interface Path {
  readonly name: string;
  /** What must be there before; undisturbed. */
  readonly arrange?: (stage: Stage) => Promise<unknown>;
  /**
   * How many rows of these tables there are in the end, whatever happens on the way; `table.column`:
   * how many in which that time has come.
   */
  readonly ends?: Readonly<Record<string, number>>;
  /** What Stripe delivers, until it is answered with a 2xx. */
  readonly deliveries: readonly Delivery[];
  /** What sets the conversation off; by default, the deliveries. */
  readonly act?: (stage: Stage) => Promise<unknown>;
  /** Called until everything is settled, besides the ticks. */
  readonly again?: (stage: Stage) => Promise<unknown>;
  /** Comes, and is answered, while the message that is to be disturbed is on its way. */
  readonly meets?: Delivery;
  /** Whose undisturbed end is the right one, where this path's own may be wrong. */
  readonly expected?: Path;
}

export const WORKERS = {
  receiver: { entry: "test/proof/workers/receiver.ts" },
  unpipelined: { entry: "test/proof/workers/receiver.ts", vars: { PIPELINE: "off" } },
  /** Leases so short that a tick gives back whatever it has not begun at once, one by one. */
  hasty: {
    entry: "test/proof/workers/receiver.ts",
    vars: {
      LEASE_SECONDS: "3",
      STATEMENT_TIMEOUT_MS: "2900",
      LOCK_TIMEOUT_MS: "2000",
      PROCESS_BATCH: "off",
    },
  },
  /** Whose handlers never read, but the one of voided invoices: one that did is never in a batch. */
  batching: { entry: "test/proof/workers/receiver.ts" },
  /** Its messages leave. */
  sending: { entry: "test/proof/workers/receiver.ts", sends: true },
  /** Asks Stripe for what was missed. */
  sweeping: { entry: "test/proof/workers/receiver.ts", vars: { SWEEP_INTERVAL_MINUTES: "60" } },
  /** Stores and processes nothing: what it took waits for a tick. */
  paused: { entry: "test/proof/workers/receiver.ts", vars: { PROCESSING: "paused" } },
} as const;

const THROWS: Failure = { how: "throw", attempts: 1 };
const REFUSED: Failure = { how: "statement", attempts: 1 };
const UNSENDABLE: Failure = { how: "parameter", attempts: 1 };
const NEVER: Failure = { how: "permanent" };
/** It fails at no attempt, and reads to know that. */
const READS: Failure = { how: "throw", attempts: 0 };
/** Known to Postgres alone. */
const REFUSED_UNASKED: Failure = { how: "write", attempts: 1 };

/** An event whose consequence goes wrong at first. */
const LOST_ANSWER = 9;
const MOST_ROUNDS = 8;

const booked = (payments: number) => ({
  effects: payments,
  ledger_entries: payments,
  outbox: payments,
});

const left = (messages: number) => ({
  "outbox.published_at": messages,
  [MESSAGES_IN_THE_QUEUE]: messages,
});

const consumed = {
  ...booked(1),
  ...left(1),
  "outbox.done_at": 1,
  "call_journal.done_at": 1,
  [CALLS_IN_EFFECT]: 1,
};

export const PATHS: readonly Path[] = [
  { name: "sync: new", ends: booked(1), deliveries: [delivery()] },
  {
    name: "sync: new, without pipelining",
    ends: booked(1),
    deliveries: [delivery({ worker: "unpipelined" })],
  },
  {
    name: "sync: after a recorded failure",
    ends: booked(1),
    deliveries: [delivery({ failure: THROWS })],
    arrange: (stage) => stage.deliver(delivery({ failure: THROWS })),
  },
  {
    name: "sync: stored before, and waiting",
    ends: booked(1),
    deliveries: [delivery()],
    arrange: (stage) => stage.deliver(delivery({ worker: "paused" })),
  },
  {
    name: "sync: contradiction, discrepancy opened",
    ends: { ...booked(0), effects: 2, discrepancies: 1 },
    deliveries: [delivery()],
    arrange: (stage) => stage.deliver(delivery({ n: 2, invoice: 1, type: "invoice.voided" })),
  },
  {
    name: "sync: duplicate",
    ends: booked(1),
    deliveries: [delivery()],
    arrange: (stage) => stage.deliver(delivery()),
  },
  {
    name: "sync: ignored",
    ends: { ...booked(0), webhook_inbox: 2 },
    deliveries: [
      delivery({ type: "customer.updated" }),
      delivery({ type: "customer.updated", n: 2 }),
    ],
  },
  {
    name: "sync: handler throws, failure recorded",
    ends: booked(1),
    deliveries: [delivery({ failure: THROWS })],
  },
  {
    name: "sync: database refuses, failure recorded",
    ends: booked(1),
    deliveries: [delivery({ failure: REFUSED })],
  },
  {
    name: "sync: driver refuses a write, failure recorded",
    ends: booked(1),
    deliveries: [delivery({ failure: UNSENDABLE })],
  },
  {
    name: "sync: permanent failure, parked",
    ends: booked(0),
    deliveries: [delivery({ failure: NEVER })],
  },
  {
    name: "async: receive, process after the answer",
    ends: booked(1),
    deliveries: [delivery({ endpoint: "later" })],
  },
  {
    name: "async: thin notification, what it names is fetched after the answer",
    ends: { effects: 1, webhook_inbox: 1, "webhook_inbox.processed_at": 1 },
    deliveries: [thinDelivery()],
    arrange: (stage) => Promise.resolve(stage.happened(thinDelivery().event)),
  },
  {
    name: "async: receive, failure recorded after the answer",
    ends: booked(1),
    deliveries: [delivery({ endpoint: "later", failure: THROWS })],
  },
  {
    name: "async: duplicate",
    ends: booked(1),
    deliveries: [delivery({ endpoint: "later" })],
    arrange: (stage) => stage.deliver(delivery({ endpoint: "later" })),
  },
  tickPath("tick: claim and process", [{}, {}]),
  tickPath("tick: claim and process, without pipelining", [{}], "unpipelined"),
  tickPath("tick: gives back what it has no time for", [{}, {}], "hasty"),
  tickPath("tick: failure recorded, neighbour processed", [{ failure: THROWS }, {}]),
  {
    ...tickPath("tick: processes a batch, one of it is ignored and one left alone", [], "batching"),
    ends: { ...booked(2), effects: 3, webhook_inbox: 4 },
    arrange: async (stage) => {
      // Left is whatever has the handler that reads.
      const reader = { type: "invoice.voided", failure: READS } as const;
      await arrangeWaiting(stage, [{}, reader, {}, {}]);
      // As if there had been a handler then.
      await stage.rows(`update webhook_inbox set event_type = 'customer.updated',
        payload = payload || '{ "type": "customer.updated" }' where event_id = 'evt_proof4'`);
    },
  },
  tickPath("tick: processes a batch, without pipelining", [{}, {}], "unpipelined"),
  tickPath(
    "tick: a batch that Postgres refuses, each processed alone",
    [{}, { failure: REFUSED_UNASKED }],
    "batching",
  ),
  { ...tickPath("tick: permanent failure, parked", [{ failure: NEVER }]), ends: booked(0) },
  {
    ...tickPath("tick: a suspect, processed alone", [{}]),
    arrange: async (stage) => {
      await stage.deliver(delivery({ worker: "paused" }));
      await stage.rows("update webhook_inbox set attempts = 1, fence = 1");
    },
  },
  {
    ...tickPath("tick: crashed at its last attempt, parked", [{}]),
    ends: booked(0),
    arrange: async (stage) => {
      await stage.deliver(delivery({ worker: "paused" }));
      await stage.rows("update webhook_inbox set attempts = 10, fence = 10");
    },
  },
  {
    name: "retention",
    ends: { ...booked(4), outbox: 3, webhook_inbox: 4 },
    deliveries: [],
    arrange: arrangeOldRows,
    act: (stage) => stage.retain("receiver"),
    again: (stage) => stage.retain("receiver"),
  },
];

export const SWEEP_PATHS: readonly Path[] = [
  {
    name: "tick: sweeps in what was never delivered",
    // The second endpoint lacks both.
    ends: { ...booked(2), effects: 4, sweep_gaps: 3, sweep_runs: 1, "sweep_runs.completed_at": 1 },
    deliveries: [],
    arrange: async (stage) => {
      await stage.deliver(delivery({ n: 1 }));
      stage.happened(anHourAgo(1));
      stage.happened(anHourAgo(2));
    },
    act: (stage) => stage.tick("sweeping"),
    again: sweepWhatIsLeft,
  },
];

export const OUTBOUND_PATHS: readonly Path[] = [
  {
    name: "sync: new, its message leaves behind the answer",
    ends: { ...booked(1), ...left(1) },
    deliveries: [delivery({ worker: "sending" })],
    again: (stage) => sendWhatWaits(stage),
  },
  dispatchPath("tick: message dispatched"),
  queuePath("queue: message consumed", 1),
  queuePath("queue: call whose answer is lost, repeated", LOST_ANSWER),
  {
    ...queuePath("queue: message that is done already", 1),
    ends: { ...consumed, [CALLS_IN_EFFECT]: 0 },
    arrange: async (stage) => {
      await arrangeSent(stage, 1);
      // Whoever sent it died before saying so, and it was sent a second time.
      await stage.rows("update outbox set published_at = null, available_at = now()");
      await stage.tick("sending");
      await stage.quiet();
      await stage.consume("sending");
    },
  },
];

export const ALL_PATHS: readonly Path[] = [...PATHS, ...SWEEP_PATHS, ...OUTBOUND_PATHS];

/** @throws when one is not there: it would drop out of the proof, and nobody would see. */
export function pathNamed(name: string): Path {
  const path = ALL_PATHS.find((one) => one.name === name);
  if (!path) throw new Error(`There is no path "${name}".`);
  return path;
}

/** The first call on account of this event is done, and its answer lost. */
export const fault: NonNullable<ApiOptions["fault"]> = ({ key, n }) =>
  n === 1 && key.includes(`evt_proof${LOST_ANSWER}:`) ? "lose the answer" : null;

/** A message that waits, and a tick that sends it. */
export function dispatchPath(name: string, worker = "sending"): Path {
  return {
    name,
    ends: { ...booked(1), ...left(1) },
    deliveries: [],
    arrange: (stage) => stage.deliver(delivery()),
    act: (stage) => stage.tick(worker),
    again: (stage) => sendWhatWaits(stage, worker),
  };
}

/** A message in the queue, and one delivery of it. */
export function queuePath(name: string, n: number, worker = "sending"): Path {
  return {
    name,
    ends: consumed,
    deliveries: [],
    arrange: (stage) => arrangeSent(stage, n),
    act: (stage) => stage.consume(worker),
    again: (stage) => consumeWhatWaits(stage, worker),
  };
}

async function arrangeSent(stage: Stage, n: number): Promise<void> {
  await stage.deliver(delivery({ n, worker: "sending" }));
  await stage.quiet();
}

/** As if the times of leases and back-offs had passed. */
async function sendWhatWaits(stage: Stage, worker = "sending"): Promise<void> {
  for (let round = 0; round < MOST_ROUNDS; round++) {
    await stage.quiet();
    const waiting = await stage.rows(`update outbox set available_at = now()
      where published_at is null and parked_at is null returning 1`);
    if (waiting.length === 0) return;
    await stage.tick(worker);
  }
}

function anHourAgo(n: number): StripeEvent {
  return { ...delivery({ n }).event, created: Math.floor(Date.now() / 1_000) - 3_600 };
}

/** The same for a sweep that did not come to its end. */
async function sweepWhatIsLeft(stage: Stage): Promise<void> {
  for (let round = 0; round < MOST_ROUNDS; round++) {
    await stage.quiet();
    await stage.rows("update sweep_runs set available_at = now()");
    const complete = await stage.rows("select from sweep_runs where completed_at is not null");
    if (complete.length > 0) return;
    await stage.tick("sweeping");
  }
}

/** The same; what was acknowledged does not come again. */
async function consumeWhatWaits(stage: Stage, worker: string): Promise<void> {
  for (let round = 0; round < MOST_ROUNDS; round++) {
    await stage.quiet();
    await stage.rows("update call_journal set available_at = now()");
    if ((await stage.consume(worker)) === null) return;
  }
}

/** Events that were stored and wait, and a tick; each is booked in the end. */
function tickPath(
  name: string,
  events: readonly Pick<DeliveryOptions, "failure">[],
  worker = "receiver",
): Path {
  return {
    name,
    ends: booked(events.length),
    deliveries: [],
    arrange: (stage) => arrangeWaiting(stage, events),
    act: (stage) => stage.tick(worker),
  };
}

async function arrangeWaiting(
  stage: Stage,
  events: readonly Pick<DeliveryOptions, "type" | "failure">[],
): Promise<void> {
  for (const [index, event] of events.entries()) {
    await stage.deliver(delivery({ n: index + 1, worker: "paused", ...event }));
  }
}

/** One row each of what is old enough to go, and of what is as old and must stay. */
async function arrangeOldRows(stage: Stage): Promise<void> {
  for (const n of [1, 2, 3]) await stage.deliver(delivery({ n }));
  await stage.deliver(delivery({ n: 4, failure: NEVER }));
  await stage.deliver(delivery({ n: 5, worker: "paused" }));
  const long = "interval '200 days'";
  await stage.rows(`update webhook_inbox set processed_at = processed_at - ${long},
    parked_at = parked_at - ${long}, received_at = received_at - ${long}
    where event_id <> 'evt_proof1'`);
  await stage.rows(`update webhook_inbox set processed_at = now() - interval '60 days'
    where event_id = 'evt_proof2'`);
  await stage.rows("update webhook_inbox set payload = null where event_id = 'evt_proof3'");
  await stage.rows(`update outbox set created_at = created_at - ${long},
    published_at = case when aggregate_id <> 'in_proof2' then now() - ${long} end,
    done_at = case when aggregate_id = 'in_proof3' then now() - ${long} end`);
}

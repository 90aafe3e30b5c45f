/**
 * The paths that an event can take through the Worker, each as one conversation with Postgres that
 * can be had again and again: what is there before it, and what sets it off.
 */
import {
  type InvoiceEventType,
  invoiceEvent,
  type StripeEvent,
  stripeEvent,
} from "../local/events.ts";
import type { Delivery, Stage } from "./stage.ts";
import type { Failure } from "./workers/receiver.ts";

export interface Path {
  readonly name: string;
  /** What must be there before; undisturbed. */
  readonly arrange?: (stage: Stage) => Promise<unknown>;
  /** What Stripe delivers, until it is answered with a 2xx. */
  readonly deliveries: readonly Delivery[];
  /** What sets the conversation off; by default, the deliveries. */
  readonly act?: (stage: Stage) => Promise<unknown>;
  /** Called until everything is settled, besides the ticks. */
  readonly again?: (stage: Stage) => Promise<unknown>;
}

export const WORKERS = {
  receiver: { entry: "test/proof/workers/receiver.ts" },
  unpipelined: { entry: "test/proof/workers/receiver.ts", vars: { PIPELINE: "off" } },
  /** Stores and processes nothing: what it took waits for a tick. */
  paused: { entry: "test/proof/workers/receiver.ts", vars: { PROCESSING: "paused" } },
} as const;

/** When everything happened, whole seconds since 1970. */
const AT = 1_790_000_000;

const THROWS: Failure = { how: "throw", attempts: 1 };
const REFUSED: Failure = { how: "statement", attempts: 1 };
const NEVER: Failure = { how: "permanent" };

export const PATHS: readonly Path[] = [
  { name: "sync: new", deliveries: [delivery()] },
  { name: "sync: new, without pipelining", deliveries: [delivery({ worker: "unpipelined" })] },
  {
    name: "sync: after a recorded failure",
    deliveries: [delivery({ failure: THROWS })],
    arrange: (stage) => stage.deliver(delivery({ failure: THROWS })),
  },
  {
    name: "sync: duplicate",
    deliveries: [delivery()],
    arrange: (stage) => stage.deliver(delivery()),
  },
  { name: "sync: ignored", deliveries: [delivery({ type: "customer.updated" })] },
  { name: "sync: handler throws, failure recorded", deliveries: [delivery({ failure: THROWS })] },
  {
    name: "sync: database refuses, failure recorded",
    deliveries: [delivery({ failure: REFUSED })],
  },
  { name: "sync: permanent failure, parked", deliveries: [delivery({ failure: NEVER })] },
  {
    name: "async: receive, process after the answer",
    deliveries: [delivery({ endpoint: "later" })],
  },
  {
    name: "async: receive, failure recorded after the answer",
    deliveries: [delivery({ endpoint: "later", failure: THROWS })],
  },
  {
    name: "async: duplicate",
    deliveries: [delivery({ endpoint: "later" })],
    arrange: (stage) => stage.deliver(delivery({ endpoint: "later" })),
  },
  tickPath("tick: claim and process", [{}, {}]),
  tickPath("tick: claim and process, without pipelining", [{}], "unpipelined"),
  tickPath("tick: failure recorded, neighbour processed", [{ failure: THROWS }, {}]),
  tickPath("tick: permanent failure, parked", [{ failure: NEVER }]),
  {
    ...tickPath("tick: a suspect, processed alone", [{}]),
    arrange: async (stage) => {
      await stage.deliver(delivery({ worker: "paused" }));
      await stage.rows("update webhook_inbox set attempts = 1, fence = 1");
    },
  },
  {
    ...tickPath("tick: crashed at its last attempt, parked", [{}]),
    arrange: async (stage) => {
      await stage.deliver(delivery({ worker: "paused" }));
      await stage.rows("update webhook_inbox set attempts = 10, fence = 10");
    },
  },
  {
    name: "retention",
    deliveries: [],
    arrange: arrangeOldRows,
    act: (stage) => stage.retain("receiver"),
    again: (stage) => stage.retain("receiver"),
  },
];

interface DeliveryOptions {
  /** Which of the path's events; each speaks of its own invoice. */
  readonly n?: number;
  readonly worker?: string;
  readonly endpoint?: string;
  readonly type?: InvoiceEventType | "customer.updated";
  readonly failure?: Failure;
}

/** An event that books a payment, unless told otherwise. */
function delivery({
  n = 1,
  worker = "receiver",
  endpoint = "billing",
  type = "invoice.paid",
  failure,
}: DeliveryOptions = {}): Delivery {
  return { worker, endpoint, event: anEvent(n, type, failure) };
}

function anEvent(
  n: number,
  type: InvoiceEventType | "customer.updated",
  failure?: Failure,
): StripeEvent {
  const options = {
    id: `evt_proof${n}`,
    apiVersion: "2026-10-28.endive",
    livemode: false,
    created: AT,
  } as const;
  if (type === "customer.updated") return stripeEvent(type, { id: `cus_proof${n}` }, options);
  const facts = {
    id: `in_proof${n}`,
    status: "paid",
    customer: "cus_proof",
    currency: "eur",
    total: 4200,
    amountPaid: 4200,
    livemode: false,
    created: AT,
    changed: AT,
  } as const;
  const event = invoiceEvent(type, facts, options);
  if (failure === undefined) return event;
  const metadata = { proof: JSON.stringify(failure) };
  return { ...event, data: { object: { ...event.data?.object, metadata } } };
}

/** Events that were stored and wait, and a tick. */
function tickPath(
  name: string,
  events: readonly Pick<DeliveryOptions, "failure">[],
  worker = "receiver",
): Path {
  return {
    name,
    deliveries: [],
    arrange: async (stage) => {
      for (const [index, { failure }] of events.entries()) {
        const n = index + 1;
        await stage.deliver(delivery({ n, worker: "paused", ...(failure ? { failure } : {}) }));
      }
    },
    act: (stage) => stage.tick(worker),
  };
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
  await stage.rows("update webhook_inbox set payload = null where event_id = 'evt_proof3'");
  await stage.rows(`update outbox set created_at = created_at - ${long},
    published_at = case when aggregate_id = 'in_proof3' then now() - ${long} end`);
}

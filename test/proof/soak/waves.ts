/**
 * Waves of events as a simulated Stripe sends them, out of order, some twice, each until it is
 * answered with a 2xx: to the endpoint that processes at once, to the one that stores first, or
 * some to one, some to the other, and some to both.
 */
import { type ExpectedBooks, expectedBooks } from "../../local/books.ts";
import { deliver, type DeliveryReport, planDeliveries } from "../../local/deliver.ts";
import type { StripeEvent } from "../../local/events.ts";
import { Random } from "../../local/random.ts";
import { type EndpointName, makeStream, type Sent } from "../../local/stream.ts";
import { delivery } from "../stage/deliveries.ts";
import type { Stage } from "../stage/stage.ts";
import type { Failure } from "../workers/receiver.ts";

export const WAVE_KINDS = ["sync", "async", "mixed"] as const;
export type WaveKind = (typeof WAVE_KINDS)[number];

/** `later` hears of the same events as `billing`, and answers when they are stored. */
type Door = EndpointName | "later";

export interface Wave {
  readonly kind: WaveKind;
  readonly expected: ExpectedBooks;
  /** Events that can never be processed, each with its endpoint: `endpoint event`. */
  readonly parked: ReadonlySet<string>;
  /** When each was first sent, epoch milliseconds, by `endpoint event`. */
  readonly firstSentAt: ReadonlyMap<string, number>;
  readonly deliveries: DeliveryReport;
}

export interface WaveOptions {
  readonly kind: WaveKind;
  readonly seed: number;
  /** Counts the waves: no two have an id in common. */
  readonly n: number;
  readonly worker: string;
  readonly concurrency: number;
  /** Told of each event that is made to fail, before it is sent. */
  readonly onTrouble: (eventId: string, failure: Failure) => void;
  readonly signal?: AbortSignal;
}

const INVOICES = 20;
const DUPLICATES_PERCENT = 15;
const TROUBLED_PERCENT = 4;
/** Stripe tries for days, against outages of hours; this takes minutes, against outages of seconds. */
const MOST_ATTEMPTS = 100;
const DAYS_BACK_SECONDS = 30 * 86_400;

const TROUBLES: readonly [Failure, ...Failure[]] = [
  { how: "throw", attempts: 1 },
  { how: "throw", attempts: 2 },
  { how: "statement", attempts: 1 },
  { how: "parameter", attempts: 1 },
];

/** Sends one wave; returns when each of its deliveries was answered with a 2xx. */
export async function sendWave(
  stage: Stage,
  { kind, seed, n, worker, concurrency, onTrouble, signal }: WaveOptions,
): Promise<Wave> {
  const random = new Random(seed);
  const stream = makeStream({
    seed,
    run: `w${n}x`,
    invoices: INVOICES,
    livemode: false,
    begin: Math.floor(Date.now() / 1000) - DAYS_BACK_SECONDS,
  });
  const sent = stream.flatMap(({ endpoint, event }) => {
    const troubled = random.chance(TROUBLED_PERCENT) ? inTrouble(event, random, onTrouble) : event;
    return doorsOf(kind, endpoint, random).map((door) => ({ endpoint: door, event: troubled }));
  });
  const failure: Failure = { how: "permanent" };
  const hopeless = doorsOf(kind, "billing", random).map((endpoint) => ({
    endpoint,
    event: delivery({ n, failure }).event,
  }));
  for (const { event } of hopeless) onTrouble(event.id, failure);

  const firstSentAt = new Map<string, number>();
  const planned = planDeliveries([...hopeless, ...sent], random, DUPLICATES_PERCENT);
  const deliveries = await deliver(planned, {
    endpoints: (one) => {
      const key = keyOf(one);
      if (!firstSentAt.has(key)) firstSentAt.set(key, Date.now());
      return stage.endpoint(worker, one.endpoint);
    },
    concurrency,
    maxAttempts: MOST_ATTEMPTS,
    ...(signal ? { signal } : {}),
  });
  const expected = expectedBooks(sent, { livemode: false });
  return { kind, expected, parked: new Set(hopeless.map(keyOf)), firstSentAt, deliveries };
}

function keyOf({ endpoint, event }: Sent<Door>): string {
  return `${endpoint} ${event.id}`;
}

function doorsOf(kind: WaveKind, endpoint: EndpointName, random: Random): readonly Door[] {
  if (endpoint !== "billing") return [endpoint];
  switch (kind) {
    case "sync":
      return ["billing"];
    case "async":
      return ["later"];
    case "mixed":
      return random.pick<readonly Door[]>([["billing"], ["later"], ["billing", "later"]]);
  }
}

/** It fails at first, and is processed in the end. */
function inTrouble(
  event: StripeEvent,
  random: Random,
  onTrouble: WaveOptions["onTrouble"],
): StripeEvent {
  if (event.data === undefined) return event;
  const failure = random.pick(TROUBLES);
  onTrouble(event.id, failure);
  const metadata = { proof: JSON.stringify(failure) };
  return { ...event, data: { ...event.data, object: { ...event.data.object, metadata } } };
}

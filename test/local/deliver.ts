/**
 * Posts events as Stripe does: several at a time, some twice, not in their order, and again after
 * anything but a 2xx, each attempt freshly signed. Back-off is Stripe's in shape, not in length:
 * milliseconds that double instead of hours.
 */
import { setTimeout as pause } from "node:timers/promises";
import type { Random } from "./random.ts";
import { signatureHeader } from "./sign.ts";
import type { EndpointName, Sent } from "./stream.ts";

/** Where an endpoint is, and the secret that it shares with Stripe. */
export interface Endpoint {
  readonly url: string;
  readonly secret: string;
}

/** What the receiver answered; status 0 when there was no answer at all. */
export interface Answer {
  readonly status: number;
  readonly outcome: string;
}

export interface DeliveryReport {
  /** Attempts, of which some were first ones, some duplicates and the rest redeliveries. */
  attempts: number;
  first: number;
  duplicates: number;
  redeliveries: number;
  readonly outcomes: Map<string, number>;
  /** For each event at each endpoint, the answers that took it: more than one is one too many. */
  readonly taken: Map<string, ("processed" | "stored")[]>;
  /** The deliveries that were given up, and their last answer. */
  readonly failed: { readonly eventId: string; readonly last: Answer }[];
}

export interface DeliverOptions<Name extends string = EndpointName> {
  /** A function is asked anew for each attempt: where a receiver is that moves. */
  readonly endpoints: Readonly<Record<Name, Endpoint>> | ((sent: Sent<Name>) => Promise<Endpoint>);
  readonly concurrency: number;
  /** A delivery is given up after so many. Stripe's last for days: more than any outage here. */
  readonly maxAttempts?: number;
  /** Called after every attempt. */
  readonly onAttempt?: (report: DeliveryReport) => void;
  readonly signal?: AbortSignal;
}

const MAX_ATTEMPTS = 12;
const FIRST_BACKOFF_MS = 25;
const MAX_BACKOFF_MS = 3_000;
/** Longer than any receiver that keeps its own deadline of ten seconds. */
const TIMEOUT_MS = 20_000;
/** How many places an event may come too early or too late. */
const REORDER_REACH = 12;
const LATE_DUPLICATE_REACH = 120;

/** The deliveries of a stream in the order in which they begin: some twice, some out of place. */
export function planDeliveries<Name extends string>(
  stream: readonly Sent<Name>[],
  random: Random,
  duplicatesPercent: number,
): readonly Sent<Name>[] {
  const planned = stream.flatMap((sent, index) => {
    const place = index + random.next() * REORDER_REACH;
    if (!random.chance(duplicatesPercent)) return [{ sent, place }];
    // Half of the duplicates race the first delivery, the others find it settled.
    const later = random.chance(50) ? 0 : 1 + random.next() * LATE_DUPLICATE_REACH;
    return [
      { sent, place },
      { sent, place: place + later },
    ];
  });
  return planned.toSorted((a, b) => a.place - b.place).map(({ sent }) => sent);
}

/** Delivers each until it is answered 2xx or given up. Rejects only when aborted. */
export async function deliver<Name extends string>(
  planned: readonly Sent<Name>[],
  { endpoints, concurrency, maxAttempts = MAX_ATTEMPTS, onAttempt, signal }: DeliverOptions<Name>,
): Promise<DeliveryReport> {
  const report: DeliveryReport = {
    attempts: 0,
    first: 0,
    duplicates: 0,
    redeliveries: 0,
    outcomes: new Map(),
    taken: new Map(),
    failed: [],
  };
  const slots = new Slots(concurrency);
  const seen = new Set<string>();

  const attemptOnce = async (sent: Sent<Name>): Promise<Answer> => {
    const { endpoint, event } = sent;
    const to = typeof endpoints === "function" ? await endpoints(sent) : endpoints[endpoint];
    return post(to, JSON.stringify(event, null, 2), signal);
  };
  const deliverOne = async (sent: Sent<Name>): Promise<void> => {
    const { endpoint, event } = sent;
    const key = `${endpoint} ${event.id}`;
    for (let attempt = 1; ; attempt += 1) {
      // The first attempt's slot was taken by the loop below, so that events begin in their order.
      if (attempt > 1) await slots.takeNext();
      const answer = await attemptOnce(sent).finally(() => slots.give());
      report.attempts += 1;
      if (attempt > 1) report.redeliveries += 1;
      count(report.outcomes, answer.outcome);
      const { outcome } = answer;
      if (outcome === "processed" || outcome === "stored") {
        report.taken.set(key, [...(report.taken.get(key) ?? []), outcome]);
      }
      onAttempt?.(report);
      if (isSuccess(answer)) return;
      if (attempt === maxAttempts) {
        report.failed.push({ eventId: event.id, last: answer });
        return;
      }
      const backoff = Math.min(FIRST_BACKOFF_MS * 2 ** (attempt - 1), MAX_BACKOFF_MS);
      await pause(backoff * (0.5 + Math.random() / 2), undefined, signal ? { signal } : {});
    }
  };

  const failures: unknown[] = [];
  const running: Promise<unknown>[] = [];
  for (const sent of planned) {
    await slots.take();
    if (signal?.aborted) break;
    const key = `${sent.endpoint} ${sent.event.id}`;
    if (seen.has(key)) report.duplicates += 1;
    else report.first += 1;
    seen.add(key);
    running.push(deliverOne(sent).catch((error: unknown) => failures.push(error)));
  }
  await Promise.all(running);
  signal?.throwIfAborted();
  if (failures.length > 0) throw failures[0];
  return report;
}

/** One attempt, signed now. Never rejects for what the receiver does; only when aborted. */
export async function post(
  endpoint: Endpoint,
  body: string,
  signal?: AbortSignal,
): Promise<Answer> {
  const timeout = AbortSignal.timeout(TIMEOUT_MS);
  try {
    const response = await fetch(endpoint.url, {
      method: "POST",
      headers: {
        "content-type": "application/json; charset=utf-8",
        "stripe-signature": await signatureHeader(body, endpoint.secret),
        "user-agent": "Stripe/1.0 (simulated)",
      },
      body,
      redirect: "manual",
      signal: signal ? AbortSignal.any([signal, timeout]) : timeout,
    });
    return {
      status: response.status,
      outcome: readOutcome(await response.text(), response.status),
    };
  } catch (error) {
    signal?.throwIfAborted();
    const name = error instanceof Error ? error.name : "";
    return { status: 0, outcome: name === "TimeoutError" ? "no answer in time" : "no connection" };
  }
}

export function isSuccess({ status }: Answer): boolean {
  return status >= 200 && status < 300;
}

/** Adds one to the count of a key. */
export function count<Key>(counts: Map<Key, number>, key: Key): void {
  counts.set(key, (counts.get(key) ?? 0) + 1);
}

function readOutcome(text: string, status: number): string {
  try {
    const answer: unknown = JSON.parse(text);
    if (typeof answer === "object" && answer !== null && "outcome" in answer) {
      return String(answer.outcome);
    }
  } catch {
    // Not the receiver's own answer: the status says more than the text.
  }
  return `status ${status}`;
}

/** So many at a time. Redeliveries go before what has not begun, or they would wait for all of it. */
class Slots {
  #free: number;
  readonly #waiting: (() => void)[] = [];

  constructor(size: number) {
    this.#free = size;
  }

  take(): Promise<void> {
    return this.#wait((next) => this.#waiting.push(next));
  }

  takeNext(): Promise<void> {
    return this.#wait((next) => this.#waiting.unshift(next));
  }

  give(): void {
    const next = this.#waiting.shift();
    if (next) next();
    else this.#free += 1;
  }

  async #wait(enqueue: (next: () => void) => void): Promise<void> {
    if (this.#free > 0) {
      this.#free -= 1;
      return;
    }
    const { promise, resolve } = Promise.withResolvers<void>();
    enqueue(resolve);
    await promise;
  }
}

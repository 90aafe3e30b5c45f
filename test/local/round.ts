/** One round: a stream is made, delivered with all that can go wrong, and the books are audited. */
import { endpoints } from "../../src/endpoints.ts";
import { type Audit, type AuditOptions, type Books, audit } from "./audit.ts";
import { type ExpectedBooks, type ExpectedReceipt, expectedBooks } from "./books.ts";
import { type DeliveryReport, deliver, planDeliveries } from "./deliver.ts";
import { chooseDropped, keyOf, type Missed, publish, sweepUp } from "./missed.ts";
import { Random } from "./random.ts";
import { auditEffects, type Effects } from "./effects.ts";
import type { Receiver } from "./run-file.ts";
import { type EndpointName, makeStream, type Sent } from "./stream.ts";
import { cutConnection } from "./trouble.ts";

export interface RoundOptions {
  readonly seed: number;
  readonly invoices: number;
  readonly concurrency: number;
  readonly duplicatesPercent: number;
  /** How many database connections to cut under way. */
  readonly cuts: number;
  /** How many deliveries never come, for a sweep to find; where none looks at a fake API, all come. */
  readonly dropsPercent: number;
  readonly signal?: AbortSignal;
  readonly onWait?: AuditOptions["onWait"];
  readonly onProgress?: (done: number, planned: number) => void;
}

export interface Round {
  readonly deliveries: DeliveryReport;
  readonly expected: ExpectedBooks;
  readonly audit: Audit;
  /** What followed at the fake Stripe API; null where there is none to ask. */
  readonly effects: Effects | null;
  /** What never came, and was found by a sweep; null when all came. */
  readonly missed: Missed | null;
  readonly cuts: number;
  /** How many events were left over, by whatever happened, and processed by the cron. */
  readonly byCron: number;
  readonly seconds: number;
  /** Whatever is not as it must be, one sentence each; empty when the books agree. */
  readonly problems: readonly string[];
}

/** Stripe lists the events of 30 days. */
const DAYS_BACK_SECONDS = 29 * 86_400;

/** Plays it; rejects when aborted, or when the database cannot be read. */
export async function playRound(receiver: Receiver, options: RoundOptions): Promise<Round> {
  const { seed, invoices, concurrency, duplicatesPercent, signal, onWait, onProgress } = options;
  const begun = performance.now();
  const stream = makeStream({
    seed,
    run: crypto.randomUUID().replaceAll("-", "").slice(0, 10),
    invoices,
    livemode: receiver.livemode ?? false,
    begin: Math.floor(Date.now() / 1000) - DAYS_BACK_SECONDS,
  });
  const random = new Random(seed);
  const isSwept = receiver.apiUrl !== null && receiver.sweeps;
  const dropped = chooseDropped(stream, random, isSwept ? options.dropsPercent : 0);
  const planned = planDeliveries(
    stream.filter((sent) => !dropped.has(keyOf(sent))),
    random,
    duplicatesPercent,
  );

  // What a notification names can be asked for as soon as it comes.
  if (receiver.apiUrl !== null) await publish(receiver.apiUrl, stream.filter(isThin), signal);
  const cuts: Promise<boolean>[] = [];
  const deliveries = await deliver(planned, {
    endpoints: endpointsOf(receiver),
    concurrency,
    ...(signal ? { signal } : {}),
    onAttempt: ({ attempts }) => {
      onProgress?.(attempts, planned.length);
      const due = Math.floor((attempts / planned.length) * (options.cuts + 1));
      while (cuts.length < Math.min(due, options.cuts)) {
        cuts.push(cutConnection(receiver.databaseUrl).catch(() => false));
      }
    },
  });
  const listed = new Set(stream.filter((sent) => !isThin(sent)).map(keyOf));
  const isNews = ({ endpoint, eventId, outcome }: ExpectedReceipt): boolean => {
    const key = `${endpoint} ${eventId}`;
    return !dropped.has(key) || (outcome === "processed" && listed.has(key));
  };
  const all = expectedBooks(stream, { livemode: receiver.livemode, handles: isHandled });
  // What an endpoint would only have ignored, no sweep brings.
  const expected = { ...all, receipts: all.receipts.filter(isNews) };
  const missed = await bringIn(receiver, stream, expected, dropped, signal);
  const cutCount = (await Promise.all(cuts)).filter(Boolean).length;
  const result = await audit(receiver, expected, {
    ...(signal ? { signal } : {}),
    ...(onWait ? { onWait } : {}),
  });
  const effects = await auditEffects(receiver, [...expected.mentioned], signal);
  return {
    deliveries,
    expected,
    audit: result,
    effects,
    missed,
    cuts: cutCount,
    byCron: countByCron(deliveries, result.books),
    seconds: (performance.now() - begun) / 1000,
    problems: [
      ...problemsOf(deliveries),
      ...notFound(missed),
      ...result.differences,
      ...(effects?.differences ?? []),
    ],
  };
}

function isThin({ event }: Sent): boolean {
  return event.object === "v2.core.event";
}

/** As `src/endpoints.ts` has it, with whatever was added there. */
function isHandled({ endpoint, event }: Sent<string>): boolean {
  const { handlers = {}, thinHandlers = {} } = endpoints[endpoint] ?? {};
  return Object.hasOwn(event.object === "v2.core.event" ? thinHandlers : handlers, event.type);
}

async function bringIn(
  receiver: Receiver,
  stream: readonly Sent[],
  expected: ExpectedBooks,
  dropped: ReadonlySet<string>,
  signal?: AbortSignal,
): Promise<Missed | null> {
  if (receiver.apiUrl === null || dropped.size === 0) return null;
  // Only now: to a sweep, what is on its way would be missing.
  await publish(receiver.apiUrl, stream, signal);
  const found = await sweepUp(receiver, dropped, signal);
  const due = expected.receipts.filter(({ endpoint, eventId }) =>
    dropped.has(`${endpoint} ${eventId}`),
  );
  return { dropped: due.length, found };
}

/** The endpoints that the Worker serves, as Stripe knows them. */
export function endpointsOf({ url, secrets }: Pick<Receiver, "url" | "secrets">) {
  const endpoint = (name: EndpointName) => ({
    url: endpointUrl(url, name),
    secret: secrets[name],
  });
  return { billing: endpoint("billing"), connect: endpoint("connect") };
}

export function endpointUrl(url: string, name: string): string {
  return `${url}/webhooks/stripe/${encodeURIComponent(name)}`;
}

/** No delivery was told that it was processed, and behind an answer there is only one attempt. */
function countByCron({ taken }: DeliveryReport, { receipts }: Books): number {
  return receipts.filter(
    ({ endpoint, event_id, outcome, attempts }) =>
      outcome === "processed" &&
      attempts > 1 &&
      !taken.get(`${endpoint} ${event_id}`)?.includes("processed"),
  ).length;
}

function notFound(missed: Missed | null): string[] {
  if (missed === null || missed.found === missed.dropped) return [];
  return [`sweep: of ${missed.dropped} events that never came, ${missed.found} were found`];
}

function problemsOf({ failed, taken }: DeliveryReport): string[] {
  return [
    ...failed.map(
      ({ eventId, last }) =>
        `delivery: ${eventId} was given up; last answer: ${last.status} ${last.outcome}`,
    ),
    ...[...taken]
      .filter(([, answers]) => answers.length > 1)
      .map(([key, answers]) => `delivery: ${key} was answered ${answers.join(" and ")}`),
  ];
}

/** GET /metrics: the figures, as Prometheus reads them. */
import { Hono } from "hono";
import { readDatabase } from "../config.ts";
import { type Alerting, readAlerting } from "../config-operator.ts";
import { MOST_COUNTED } from "../db/rows.ts";
import { withConnection } from "../db/with-connection.ts";
import type { Endpoints } from "../endpoints.ts";
import { MOST_LATELY } from "../inbox/rates.ts";
import { MOST_OF_A_REASON } from "../inbox/stats.ts";
import { type Figures, readFigures } from "../operate/figures.ts";
import { sweepingOf } from "../sweeping.ts";
import type { DoorEnv } from "./answers.ts";
import { bearersOnly, whereConfigured } from "./ops-access.ts";

/** Less than the 10 s that Prometheus waits by default. */
const DEADLINE_MS = 9_000;
const TIMEOUTS = { lockTimeoutMs: 3_000, statementTimeoutMs: 8_000 };
/** https://prometheus.io/docs/instrumenting/exposition_formats/ */
const CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8";

export function metricsDoor(endpoints: Endpoints): Hono<DoorEnv> {
  const door = new Hono<DoorEnv>({ strict: false });
  door.use(whereConfigured, bearersOnly);
  return door.get("/", async (c) => {
    const time = {
      deadlineMs: DEADLINE_MS,
      afterwards: (rest: Promise<unknown>): void => c.executionCtx.waitUntil(rest),
    };
    const alerting = readAlerting(c.env);
    const figures = await withConnection(readDatabase(c.env), time, ({ db }) =>
      readFigures(db, TIMEOUTS),
    );
    const sweeping = sweepingOf(endpoints, c.env);
    const accounts = "off" in sweeping ? [] : sweeping.accounts;
    const text = exposition(figures, alerting, accounts);
    return c.body(text, 200, { "content-type": CONTENT_TYPE });
  });
}

/** The commonest; Stripe has some 250, and each is a series for each endpoint. */
const MOST_TYPES = 100;

type Labels = Readonly<Record<string, string>>;
type Sample = readonly [value: number, labels?: Labels];

/** All are gauges: what is in the database may also shrink. */
function exposition(
  figures: Figures,
  { dispatching, processing }: Alerting,
  accounts: readonly string[],
): string {
  const { inbox, outbox, reconciliation, heartbeats, lastHour, lastDay } = figures;
  const types = lastHour.byType.slice(0, MOST_TYPES);
  return [
    gauge("processing", "1: on; 0: paused", [[Number(processing)]]),
    gauge("waiting_events", `Neither settled nor parked, counted up to ${MOST_COUNTED}`, [
      [inbox.waiting.count],
    ]),
    gauge(
      "oldest_waiting_seconds",
      "Since the oldest that waits was received, or requeued; 0: none waits",
      [[inbox.oldestWaitingSeconds ?? 0]],
    ),
    gauge(
      "needs_review_events",
      `Parked, by reason, counted up to ${MOST_OF_A_REASON} of each`,
      inbox.needsReviewByReason.map(({ reason, events }) => [events.count, { reason }]),
    ),
    gauge(
      "received_last_hour",
      `Events received in the last hour, of the newest ${MOST_LATELY}`,
      types.map(({ endpoint, type, received }) => [received, { endpoint, type }]),
    ),
    gauge(
      "processed_last_hour",
      `Events processed in the last hour, of the newest ${MOST_LATELY} settled`,
      types.map(({ endpoint, type, processed }) => [processed, { endpoint, type }]),
    ),
    gauge(
      "ignored_last_hour",
      "Events ignored in the last hour, by reason",
      lastHour.ignored.map(({ reason, events }) => [events, { reason }]),
    ),
    gauge(
      "all_received_last_hour",
      `Events received in the last hour, of all types, counted up to ${MOST_LATELY}`,
      [[lastHour.received]],
    ),
    gauge("duplicates_last_hour", "Deliveries of the last hour's events on top of the first", [
      [lastHour.duplicates],
    ]),
    gauge(
      "processing_seconds",
      "From received to processed, in the last hour",
      lastHour.processingSeconds
        .filter(({ type }) => type === null)
        .flatMap(({ p50, p95, p99 }): Sample[] => [
          [p50, { quantile: "0.5" }],
          [p95, { quantile: "0.95" }],
          [p99, { quantile: "0.99" }],
        ]),
    ),
    gauge("hours_counted_until_timestamp_seconds", "Up to where hours are counted; 0: none is", [
      timestamp(lastDay.countedUntil),
    ]),
    gauge("truncated", "1 where there was more than is counted", [
      [Number(inbox.waiting.more), { what: "waiting_events" }],
      [Number(inbox.needsReview.more), { what: "needs_review_events" }],
      [Number(outbox.waiting.more), { what: "waiting_messages" }],
      [Number(outbox.notDone.more), { what: "messages_not_done" }],
      [Number(lastHour.truncated), { what: "last_hour" }],
    ]),
    gauge("waiting_messages", "In the outbox, not left and not parked", [[outbox.waiting.count]]),
    gauge(
      "oldest_waiting_message_seconds",
      "Since the oldest of them was written; 0: none, or no queue is bound and they may wait",
      [[dispatching ? (outbox.oldestWaitingSeconds ?? 0) : 0]],
    ),
    gauge("messages_not_done", "Left, and not known to be done", [[outbox.notDone.count]]),
    gauge("oldest_message_not_done_seconds", "Since the oldest of them left; 0: none", [
      [outbox.oldestNotDoneSeconds ?? 0],
    ]),
    gauge("needs_review_messages", "Could not be sent", reasons(outbox.messagesInReview)),
    gauge("needs_review_calls", "A person must look at them", reasons(outbox.callsInReview)),
    gauge(
      "open_discrepancies",
      "By kind",
      reconciliation.openDiscrepancies.map(({ kind, objects }) => [objects, { kind }]),
    ),
    gauge(
      "gaps_last_day",
      "Events that a sweep found missing",
      reconciliation.gapsLastDay.map(({ endpoint, events }) => [events, { endpoint }]),
    ),
    gauge(
      "swept_until_timestamp_seconds",
      "The youngest event that a complete sweep has looked for; or when sweeping began",
      reconciliation.sweeps
        .filter(({ account }) => accounts.includes(account))
        .map(({ account, seenSecondsAgo, firstSecondsAgo }) => [
          Date.now() / 1_000 - (seenSecondsAgo ?? firstSecondsAgo),
          { account },
        ]),
    ),
    gauge("tick_completed_timestamp_seconds", "The last tick that did not fail; 0: none was seen", [
      timestamp(heartbeats.tick?.completedAt ?? null),
    ]),
    gauge(
      "retention_completed_timestamp_seconds",
      "The last nightly run that did not fail; 0: none was seen",
      [timestamp(heartbeats.retention?.completedAt ?? null)],
    ),
  ].join("");
}

function timestamp(time: Date | null): Sample {
  return [time === null ? 0 : time.getTime() / 1_000];
}

function reasons(all: readonly { reason: string; count: number }[]): Sample[] {
  return all.map(({ reason, count }) => [count, { reason }]);
}

function gauge(name: string, help: string, samples: readonly Sample[]): string {
  const full = `stripe_inbox_${name}`;
  const lines = samples.map(([value, labels = {}]) => `${full}${labelled(labels)} ${value}`);
  return [`# HELP ${full} ${help}.`, `# TYPE ${full} gauge`, ...lines, ""].join("\n");
}

function labelled(labels: Labels): string {
  const all = Object.entries(labels).map(([name, value]) => `${name}="${escaped(value)}"`);
  return all.length === 0 ? "" : `{${all.join(",")}}`;
}

function escaped(value: string): string {
  return value.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n");
}

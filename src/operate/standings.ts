/**
 * How each figure stands, in one of four states and in words, with what to do where it is not well.
 * Pure. What alerts watch stands as they say; the rest is not worth a call at night.
 */
import type { Alerting } from "../config-operator.ts";
import { MOST_LATELY } from "../inbox/rates.ts";
import type { AlertName, Concern } from "./alerts.ts";
import type { Figures } from "./figures.ts";
import { brief, few, number, some, span } from "./wording.ts";

/**
 * - `well`: nothing to do.
 * - `look`: no trouble yet, or none of ours; somebody should look when there is time.
 * - `trouble`: somebody is needed.
 * - `off`: switched off, or there is nothing to tell by.
 */
export type Standing = "well" | "look" | "trouble" | "off";

export type FigureName =
  | "receiving"
  | "waiting"
  | "needs_review"
  | "discrepancies"
  | "outbox"
  | "sweeps"
  | "ticks"
  | "retention"
  | "processing_time"
  | "duplicates"
  | "ignored";

export interface StandingFigure {
  readonly name: FigureName;
  readonly standing: Standing;
  /** The figure itself, short. */
  readonly value: string;
  readonly summary: string;
  /** Null: nothing. */
  readonly todo: string | null;
}

type Words = Pick<StandingFigure, "standing" | "summary" | "todo">;

/** @param concerns as `concernsOf` makes them of the same figures. */
export function standingsOf(
  figures: Figures,
  concerns: readonly Concern[],
  alerting: Alerting,
): readonly StandingFigure[] {
  const watched = (name: AlertName): Words => {
    const concern = concerns.find((one) => one.name === name);
    if (!concern) return { standing: "off", summary: "Switched off.", todo: null };
    const { firing, summary, todo } = concern;
    return { standing: firing ? "trouble" : todo === null ? "well" : "look", summary, todo };
  };
  const { inbox, outbox, reconciliation, heartbeats } = figures;
  const open = reconciliation.openDiscrepancies.reduce((sum, { objects }) => sum + objects, 0);
  const inReview = [...outbox.messagesInReview, ...outbox.callsInReview];
  const messagesInReview = inReview.reduce((sum, { count }) => sum + count, 0);
  return [
    receiving(figures),
    {
      name: "waiting",
      value: withAge(some(inbox.waiting), inbox.oldestWaitingSeconds),
      ...watched("backlog_too_old"),
    },
    {
      name: "needs_review",
      value: some({
        count: inbox.needsReview.count + messagesInReview,
        more: inbox.needsReview.more,
      }),
      ...watched("review_grew"),
    },
    { name: "discrepancies", value: number(open), ...watched("discrepancies_grew") },
    {
      name: "outbox",
      value: withAge(some(outbox.waiting), outbox.oldestWaitingSeconds),
      ...messages(figures, alerting, watched("outbox_stuck")),
    },
    { name: "sweeps", ...sweeps(figures, watched("sweep_overdue")) },
    {
      name: "ticks",
      value: ago(heartbeats.tick?.completedSecondsAgo),
      ...watched("ticks_failing"),
    },
    retention(figures),
    processingTime(figures, alerting),
    duplicates(figures),
    ignored(figures),
  ];
}

function withAge(count: string, oldestSeconds: number | null): string {
  return oldestSeconds === null ? count : `${count}, oldest ${span(oldestSeconds)}`;
}

function ago(seconds: number | null | undefined): string {
  return seconds === null || seconds === undefined ? "never" : `${span(seconds)} ago`;
}

/** Hours are counted by ticks: without them, a day is one that was. */
const HOURS_OLD = 7_200;

/** An endpoint that Stripe has switched off is as quiet as one to which nothing happens. */
function receiving({ lastHour, lastDay, heartbeats }: Figures): StandingFigure {
  const name = "receiving";
  const { received } = lastHour;
  const value = `${some({ count: received, more: received >= MOST_LATELY })} in an hour`;
  if (received > 0) {
    return { name, standing: "well", value, summary: "Events come in.", todo: null };
  }
  if (
    lastDay.countedUntil === null ||
    (heartbeats.tick?.completedSecondsAgo ?? Infinity) > HOURS_OLD
  ) {
    const summary = "No event came in within the last hour; the hours before are not counted yet.";
    const todo = "Do ticks run? Then look again in an hour, or at the newest events.";
    return { name, standing: "look", value, summary, todo };
  }
  if (lastDay.received > 0) {
    const summary = "No event came in within the last hour; some did within the day.";
    return { name, standing: "well", value, summary, todo: null };
  }
  return {
    name,
    standing: "look",
    value,
    summary: "No event came in within a day.",
    todo: "If some should have: the doctor asks Stripe whether the endpoint is enabled.",
  };
}

function messages({ outbox }: Figures, { dispatching }: Alerting, watched: Words): Words {
  if (dispatching || watched.standing === "trouble") return watched;
  const waits = outbox.waiting.count > 0 || outbox.waiting.more;
  return {
    standing: waits ? "look" : "off",
    summary: "No queue is bound: messages wait in the outbox.",
    todo: waits ? "Bind OUTBOX_QUEUE if what follows from a payment is to happen." : null,
  };
}

function sweeps({ reconciliation }: Figures, watched: Words): Words & { readonly value: string } {
  const seen = reconciliation.sweeps.flatMap(({ seenSecondsAgo }) => seenSecondsAgo ?? []);
  if (seen.length > 0) return { ...watched, value: `up to ${span(Math.max(...seen))} ago` };
  if (watched.standing !== "well") return { ...watched, value: "never" };
  const summary = "No sweep has come to its end yet.";
  return { standing: "off", value: "never", summary, todo: null };
}

/** It runs each night; one that is late by some hours has failed. */
const RETENTION_SECONDS = 26 * 3_600;

function retention({ heartbeats }: Figures): StandingFigure {
  const name = "retention";
  const { retention: last } = heartbeats;
  const age = last?.completedSecondsAgo ?? null;
  const value = ago(age);
  if (last === null) {
    const summary = "It has not run yet: it does at 03:17 UTC.";
    return { name, standing: "off", value, summary, todo: null };
  }
  if (age !== null && age <= RETENTION_SECONDS) {
    return { name, standing: "well", value, summary: "What is old enough is purged.", todo: null };
  }
  const summary = "What is old enough is not purged; the tables grow.";
  const todo = "The log line of the night's run says what fails.";
  return { name, standing: "look", value, summary, todo };
}

function processingTime({ lastHour }: Figures, { backlogSeconds }: Alerting): StandingFigure {
  const name = "processing_time";
  const all = lastHour.processingSeconds.find(({ type }) => type === null);
  if (!all || all.events === 0) {
    const summary = isSettledCut(lastHour)
      ? "Not known: so much was settled that only the newest of the hour were counted."
      : "Nothing was processed within the last hour.";
    return { name, standing: "off", value: "–", summary, todo: null };
  }
  const value = `half within ${brief(all.p50)}, 95 % within ${brief(all.p95)}`;
  if (all.p95 <= backlogSeconds) {
    return { name, standing: "well", value, summary: "From received to processed.", todo: null };
  }
  const summary = "Some were processed long after they came.";
  return { name, standing: "look", value, summary, todo: "By type, below: which are slow?" };
}

/** Stripe repeats a few by itself. */
const MANY_DUPLICATES = { share: 0.2, deliveries: 20 };

function duplicates({ lastHour }: Figures): StandingFigure {
  const name = "duplicates";
  const { duplicatesShare: share, duplicates: count, received } = lastHour;
  const value = share === null ? "–" : `${(share * 100).toFixed(share < 0.1 ? 1 : 0)} %`;
  const many =
    share !== null &&
    share > MANY_DUPLICATES.share &&
    received + count >= MANY_DUPLICATES.deliveries;
  const summary =
    share === null
      ? "No new event came within the last hour."
      : `${count === 1 ? "1 delivery" : `${number(count)} deliveries`} of the last hour's events came on top, and changed nothing.`;
  if (!many) return { name, standing: share === null ? "off" : "well", value, summary, todo: null };
  const todo = "Stripe repeats what is not answered in time, or with 5xx: the log says why.";
  return { name, standing: "look", value, summary, todo };
}

const ignoredIn = ({ ignored: reasons }: Figures["lastHour"]): number =>
  reasons.reduce((sum, { events }) => sum + events, 0);

/** More was settled within the hour than is counted. */
export function isSettledCut(lastHour: Figures["lastHour"]): boolean {
  return lastHour.processed + ignoredIn(lastHour) >= MOST_LATELY;
}

/** Reasons that speak of how a deployment is set up; the others are a matter of course. */
const TELLING = ["livemode", "account"];

function ignored({ lastHour, lastDay }: Figures): StandingFigure {
  const name = "ignored";
  const reasons = [...new Set([...lastHour.ignored, ...lastDay.ignored].map((one) => one.reason))];
  const count = ignoredIn(lastHour);
  const value = `${some({ count, more: isSettledCut(lastHour) })} in an hour`;
  if (reasons.length === 0) {
    return { name, standing: "well", value, summary: "No event was ignored.", todo: null };
  }
  const summary = `By the rules of the endpoints, in the last day: ${few(reasons)}.`;
  const telling = reasons.some((reason) => TELLING.includes(reason));
  return {
    name,
    standing: telling ? "look" : "well",
    value,
    summary,
    todo: telling
      ? "Are livemode and accounts right for each endpoint? If not: put them right, deploy, requeue."
      : null,
  };
}

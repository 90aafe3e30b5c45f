/**
 * What is wrong by the figures, and what of it is to be told. Pure: figures and what was told last
 * in, words out. Each says what is the matter, and what to do.
 */
import type { Alerting } from "../config-operator.ts";
import type { State } from "./figures.ts";
import { counted, few, number, some, someOf, span } from "./wording.ts";

export type AlertName =
  | "ticks_failing"
  | "backlog_too_old"
  | "review_grew"
  | "discrepancies_grew"
  | "outbox_stuck"
  | "sweep_overdue";

/** One thing that is watched, as it stands. */
export interface Concern {
  readonly name: AlertName;
  readonly firing: boolean;
  /** How much of it there is; 0 where only whether matters. */
  readonly level: number;
  readonly summary: string;
  /** Null: nothing. */
  readonly todo: string | null;
}

/** What was told last. */
export interface Told {
  readonly firing: boolean;
  readonly level: number;
  readonly secondsAgo: number;
  /** Since then, nobody knows whether something else was heard. */
  readonly uncertain: boolean;
}

/** What grows by one now and then is told once an hour; what grows tenfold, at once. */
const GROWTH_SECONDS = 3_600;
const GROWTH_AT_ONCE = 10;

/** @param told null: nothing was, ever. */
export function isToBeTold({ firing, level }: Concern, told: Told | null): boolean {
  if (told === null) return firing;
  if (told.uncertain || told.firing !== firing) return true;
  if (!firing || level <= told.level) return false;
  return told.secondsAgo >= GROWTH_SECONDS || level >= told.level * GROWTH_AT_ONCE;
}

/** What is swept, and how long may pass until it counts as overdue. */
interface Swept {
  readonly accounts: readonly string[];
  readonly overdueSeconds: number;
}

/**
 * Each thing that is watched, whether or not it is well. What is not known, or switched off, is not
 * among them: it is neither.
 */
export function concernsOf(
  state: State,
  alerting: Alerting,
  sweeping: Swept | { readonly off: string },
): readonly Concern[] {
  return [
    ticks(state),
    backlog(state, alerting),
    review(state),
    openDiscrepancies(state),
    messages(state, alerting),
    ...("off" in sweeping ? [] : [sweeps(state, alerting, sweeping)]),
  ];
}

/** Some ticks may be late, or fail on a moment's trouble. */
const TICK_SECONDS = 300;

function ticks({ heartbeats: { tick } }: State): Concern {
  const age = tick?.completedSecondsAgo ?? null;
  const firing = age === null || age > TICK_SECONDS;
  const fault = faultOf(tick?.detail);
  const because = fault === null ? "" : `: ${fault}`;
  const summary =
    tick === null
      ? "No tick was ever seen."
      : firing
        ? `No tick has come to a good end ${age === null ? "yet" : `for ${span(age)}`}${because}.`
        : fault === null
          ? "Ticks come and end well."
          : `The last tick failed${because}.`;
  const todo =
    fault === null
      ? "Are there crons in wrangler.toml? The log lines of ticks say what fails."
      : "Mend what it names; the log lines of ticks say more.";
  return {
    name: "ticks_failing",
    firing,
    level: 0,
    summary,
    todo: firing || fault !== null ? todo : null,
  };
}

/** The code of what a run failed with, and the setting that it names; null: it did not fail. */
export function faultOf(detail: unknown): string | null {
  if (typeof detail !== "object" || detail === null || !("error" in detail)) return null;
  const named = [
    detail.error,
    "setting" in detail ? detail.setting : null,
    "sqlstate" in detail ? detail.sqlstate : null,
  ];
  return named.filter((part) => typeof part === "string").join(" ");
}

function backlog({ inbox }: State, { backlogSeconds, processing }: Alerting): Concern {
  const { waiting, oldestWaitingSeconds: age } = inbox;
  const firing = age !== null && age > backlogSeconds;
  return {
    name: "backlog_too_old",
    firing,
    level: 0,
    summary: firing
      ? `Events wait: ${some(waiting)}, the oldest for ${span(age)}.`
      : processing
        ? "No event waits for long."
        : "Processing is paused; no event waits for long yet.",
    todo: !processing
      ? 'PROCESSING is paused: set it to "on" once the cause is mended.'
      : firing
        ? "Does the cron tick, is the database slow? The log lines of ticks say."
        : null,
  };
}

function review({ inbox, outbox }: State): Concern {
  const { needsReview, needsReviewByReason } = inbox;
  const sent = [...outbox.messagesInReview, ...outbox.callsInReview];
  const messagesAndCalls = sent.reduce((sum, { count }) => sum + count, 0);
  const level = needsReview.count + messagesAndCalls;
  const reasons = [...needsReviewByReason, ...sent].map(({ reason }) => reason);
  const toReview = [
    ...(needsReview.count > 0 ? [someOf(needsReview, "event")] : []),
    ...(messagesAndCalls > 0 ? [counted(messagesAndCalls, "message")] : []),
  ];
  return {
    name: "review_grew",
    firing: level > 0,
    level,
    summary:
      level > 0
        ? `To review: ${toReview.join(" and ")} (${few(reasons)}).`
        : "Nothing needs review.",
    todo: level > 0 ? "Mend the cause, then requeue them by their reason." : null,
  };
}

function openDiscrepancies({ reconciliation }: State): Concern {
  const { openDiscrepancies: open } = reconciliation;
  const level = open.reduce((sum, { objects }) => sum + objects, 0);
  return {
    name: "discrepancies_grew",
    firing: level > 0,
    level,
    summary:
      level > 0
        ? `Open discrepancies: ${number(level)} (${few(open.map(({ kind }) => kind))}).`
        : "No discrepancy is open.",
    todo: level > 0 ? "Settle each where it belongs, and resolve it with a note." : null,
  };
}

function messages({ outbox }: State, { outboxSeconds, dispatching }: Alerting): Concern {
  const { waiting, oldestWaitingSeconds, notDone, oldestNotDoneSeconds } = outbox;
  const parts = [
    ...(dispatching && oldestWaitingSeconds !== null && oldestWaitingSeconds > outboxSeconds
      ? [`${some(waiting)} not left, the oldest for ${span(oldestWaitingSeconds)}`]
      : []),
    ...(oldestNotDoneSeconds !== null && oldestNotDoneSeconds > outboxSeconds
      ? [`${some(notDone)} left and not done, the oldest for ${span(oldestNotDoneSeconds)}`]
      : []),
  ];
  return {
    name: "outbox_stuck",
    firing: parts.length > 0,
    level: 0,
    summary: parts.length > 0 ? `Messages: ${parts.join("; ")}.` : "Messages leave and are done.",
    todo:
      parts.length > 0
        ? "Is the queue bound, does its consumer run, does Stripe accept STRIPE_API_KEY?"
        : null,
  };
}

function sweeps(
  { reconciliation }: State,
  { sweepSeconds }: Alerting,
  { accounts, overdueSeconds }: Swept,
): Concern {
  const limit = Math.max(sweepSeconds, overdueSeconds);
  const overdue = reconciliation.sweeps.filter(
    ({ account, seenSecondsAgo, firstSecondsAgo }) =>
      accounts.includes(account) && (seenSecondsAgo ?? firstSecondsAgo) > limit,
  );
  const errors = overdue.map(({ account, error }) => `${account}${error ? ` (${error})` : ""}`);
  return {
    name: "sweep_overdue",
    firing: overdue.length > 0,
    level: 0,
    summary:
      overdue.length > 0
        ? `What Stripe did not deliver was not looked for in over ${span(limit)}: ${few(errors)}.`
        : "What Stripe did not deliver is looked for.",
    todo:
      overdue.length > 0
        ? "Look at STRIPE_API_KEY, and at last_error of sweep_runs; Stripe lists 30 days."
        : null,
  };
}

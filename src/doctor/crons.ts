/** Whether what is to run again and again has run lately. */
import { sql } from "drizzle-orm";
import type { Connection } from "../db/connect.ts";
import { numberOrNull } from "../db/rows.ts";
import { webhookInbox as inbox } from "../db/schema.ts";
import { inOneFlight, type Timeouts } from "../db/transaction.ts";
import { faultOf } from "../operate/alerts.ts";
import { readNow, type State } from "../operate/figures.ts";
import { OWN_ACCOUNT } from "../reconcile/sweep-runs.ts";
import type { Sweeping } from "../sweeping.ts";
import { fail, type Finding, ok, skipped, warn } from "./finding.ts";

const TIMEOUTS: Timeouts = { lockTimeoutMs: 3_000, statementTimeoutMs: 5_000 };
/** Two ticks may fail to come, or take their time. */
const TICK_SECONDS = 180;
const NIGHT_SECONDS = 26 * 3_600;

export async function examineCrons(
  db: Connection,
  sweeping: Sweeping,
): Promise<readonly Finding[]> {
  const state = await readNow(db, TIMEOUTS);
  const [[oldest] = []] = await inOneFlight(db, TIMEOUTS, [
    sql`select extract(epoch from now() - min(received_at))::float8 as seconds from ${inbox}`,
  ]);
  return [
    tick(state),
    retention(state, numberOrNull(oldest, "seconds") ?? 0),
    ...("off" in sweeping
      ? [skipped("sweep", sweeping.off)]
      : sweeping.accounts.map((account) => sweepOf(account, state, sweeping.overdueSeconds))),
  ];
}

function tick({ heartbeats: { tick: beat } }: State): Finding {
  const check = "cron: tick";
  const todo = 'crons in wrangler.toml must have "* * * * *"; then npm run deploy';
  if (!beat) return fail(check, "no tick was ever seen", `A minute after a deployment: ${todo}`);
  const ago = beat.completedSecondsAgo;
  const fault = faultOf(beat.detail);
  if (ago !== null && ago <= TICK_SECONDS) {
    return fault === null
      ? ok(check, `${Math.round(ago)} s ago`)
      : warn(check, `the last one failed: ${fault}`, "Look at the log lines of ticks");
  }
  if (beat.startedSecondsAgo <= TICK_SECONDS) {
    return fail(
      check,
      fault === null ? "ticks begin and do not end" : `ticks fail: ${fault}`,
      "Look at the log lines of ticks: npx wrangler tail",
    );
  }
  return fail(check, `the last one began ${minutes(beat.startedSecondsAgo)} ago`, todo);
}

function retention({ heartbeats: { retention: beat } }: State, inboxSeconds: number): Finding {
  const check = "cron: retention";
  const todo = 'crons in wrangler.toml must have "17 3 * * *"; then npm run deploy';
  if (!beat) {
    return inboxSeconds > NIGHT_SECONDS
      ? warn(check, "it was never seen", todo)
      : skipped(check, "not yet: it runs at 03:17 UTC");
  }
  const ago = beat.completedSecondsAgo;
  if (ago !== null && ago <= NIGHT_SECONDS) return ok(check, `${minutes(ago)} ago`);
  if (beat.startedSecondsAgo > NIGHT_SECONDS) {
    return warn(check, `the last one began ${minutes(beat.startedSecondsAgo)} ago`, todo);
  }
  const code = faultOf(beat.detail);
  return warn(
    check,
    code === null
      ? `it began ${minutes(beat.startedSecondsAgo)} ago, and did not end yet`
      : `it fails: ${code}`,
    "Look at the log lines of retention: npx wrangler tail",
  );
}

function sweepOf(account: string, { reconciliation }: State, limit: number): Finding {
  const check = account === OWN_ACCOUNT ? "sweep" : `sweep of ${account}`;
  const todo = "Look at the log lines of sweeps, and at last_error of sweep_runs";
  const seen = reconciliation.sweeps.find((one) => one.account === account);
  if (!seen) return warn(check, "none has begun yet", "The next tick begins one; look again");
  if (seen.error !== null) return fail(check, `it fails: ${seen.error}`, todo);
  if (seen.seenSecondsAgo === null) {
    return seen.firstSecondsAgo > limit
      ? warn(
          check,
          `the first one began ${minutes(seen.firstSecondsAgo)} ago: none is complete`,
          todo,
        )
      : ok(check, "the first one is under way");
  }
  const ago = minutes(seen.seenSecondsAgo);
  return seen.seenSecondsAgo > limit
    ? warn(check, `the last complete one reaches to ${ago} ago`, todo)
    : ok(check, `all that was created up to ${ago} ago was looked for`);
}

function minutes(seconds: number): string {
  return seconds < 7_200 ? `${Math.round(seconds / 60)} min` : `${Math.round(seconds / 3_600)} h`;
}

/**
 * What goes on around each run of the cron: its heartbeat, the count of the hours that are over, and
 * the alerts. None of it keeps a tick from its work.
 */
import { type Env, readDatabase } from "./config.ts";
import { readAlerting } from "./config-operator.ts";
import type { Connection } from "./db/connect.ts";
import { sqlStateOf } from "./db/postgres-errors.ts";
import { inOneFlight } from "./db/transaction.ts";
import { withConnection } from "./db/with-connection.ts";
import type { Endpoints } from "./endpoints.ts";
import { explain } from "./faults.ts";
import { countHour } from "./inbox/hours.ts";
import { errorClass, type Fields, log } from "./log.ts";
import { claimToTell, recordTold, type Telling } from "./operate/alert-states.ts";
import { type Concern, concernsOf } from "./operate/alerts.ts";
import { readNow } from "./operate/figures.ts";
import { recordEnd, recordStart, type Run } from "./operate/heartbeats.ts";
import { sweepingOf } from "./sweeping.ts";

/** How a run ended. */
export interface Ended {
  readonly counts: Readonly<Record<string, number>>;
  /** Null: it did not fail. */
  readonly fault: Fields | null;
}

type Afterwards = (rest: Promise<unknown>) => void;

const TIMEOUTS = { lockTimeoutMs: 3_000, statementTimeoutMs: 10_000 };
/** A database that does not answer keeps no tick waiting for long. */
const START_MS = 5_000;
const END_MS = 90_000;
/** Of a tick; the next one goes on. */
const COUNTING_MS = 15_000;
/** `query_canceled`, by the timeout. */
const TOOK_TOO_LONG = "57014";
/** All at once; less than the lease of what is to be told. */
const TELL_TIMEOUT_MS = 5_000;

/**
 * Runs it, and leaves word of when it began and how it ended.
 *
 * @param behind what else is to be done then, on the same connection.
 */
export async function withHeartbeat(
  run: Run,
  env: Env,
  afterwards: Afterwards,
  work: () => Promise<Ended>,
  behind: readonly Chore[] = [],
): Promise<void> {
  const onConnection = (deadlineMs: number, use: (db: Connection) => Promise<void>) =>
    orLog(run, () =>
      withConnection(readDatabase(env), { deadlineMs, afterwards }, ({ db }) => use(db)),
    );
  // Beside the work: a database that answers late keeps nobody waiting twice.
  const begun = onConnection(START_MS, (db) => recordStart(db, run, TIMEOUTS));
  const { counts, fault } = await work();
  await begun;
  await onConnection(END_MS, async (db) => {
    await inOneFlight(db, TIMEOUTS, [recordEnd(run, fault !== null, fault ?? counts)]);
    for (const chore of behind) await orLog(run, () => chore(db));
  });
}

export type Chore = (db: Connection) => Promise<void>;

/** Counts the hours that are over, as many as there is time for. */
export async function countHours(db: Connection): Promise<void> {
  const until = Date.now() + COUNTING_MS;
  while (Date.now() < until && (await countOrPass(db)));
}

/** @returns whether there was an hour. One that takes too long is passed, or it would be tried for ever. */
async function countOrPass(db: Connection): Promise<boolean> {
  try {
    return (await countHour(db, "count", TIMEOUTS)) !== null;
  } catch (error) {
    if (sqlStateOf(error) !== TOOK_TOO_LONG) throw error;
    const hour = await countHour(db, "pass", TIMEOUTS);
    log("warn", "hour_not_counted", { hour: hour?.toISOString() });
    return hour !== null;
  }
}

/** Tells what has become wrong, or well again. */
export function tellAlerts(endpoints: Endpoints, env: Env): Chore {
  return async (db) => {
    const alerting = readAlerting(env);
    const concerns = concernsOf(await readNow(db, TIMEOUTS), alerting, sweepingOf(endpoints, env));
    const claimed = await claimToTell(db, concerns, alerting.url !== null, TIMEOUTS);
    if (claimed.length === 0) return;
    const tellings = await Promise.all(claimed.map(({ concern }) => tell(alerting.url, concern)));
    const written = claimed.map((one, n) => recordTold(one, tellings[n] ?? "nobody to tell"));
    await inOneFlight(db, TIMEOUTS, written);
    for (const [n, { concern }] of claimed.entries()) {
      const { name, firing, level, summary } = concern;
      const telling = tellings[n];
      const said = typeof telling === "object" ? telling : { told: telling === "told" };
      log(firing ? "error" : "info", "alert", { name, firing, count: level, summary, ...said });
    }
  };
}

async function tell(url: string | null, concern: Concern): Promise<Telling> {
  if (url === null) return "nobody to tell";
  const { name, firing, level, summary, todo } = concern;
  try {
    const response = await fetch(url, {
      method: "POST",
      headers: { "content-type": "application/json" },
      // `text` is what Slack and Mattermost show.
      body: JSON.stringify({
        alert: name,
        state: firing ? "firing" : "ok",
        level,
        summary,
        todo,
        text: `stripe-inbox ${firing ? "ALERT" : "ok"} ${name}: ${summary}${todo === null ? "" : ` ${todo}`}`,
      }),
      redirect: "manual",
      signal: AbortSignal.timeout(TELL_TIMEOUT_MS),
    });
    await response.body?.cancel();
    return response.ok ? "told" : { error: `Alert:${response.status}` };
  } catch (error) {
    return { error: errorClass(error) };
  }
}

async function orLog(run: Run, work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (fault) {
    log("error", "watch", { run, ...explain(fault) });
  }
}

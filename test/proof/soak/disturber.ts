/**
 * Somebody who, at random moments, disturbs whatever is being said to Postgres: cuts it off within
 * a message, keeps a message back, ends sessions, crashes Postgres, or kills the Worker. The seed
 * draws what happens, and after how many messages; which message that is, the machine decides.
 */
import { setTimeout as pause } from "node:timers/promises";
import type { Fate } from "../../local/proxy.ts";
import type { Random } from "../../local/random.ts";
import type { Stage } from "../stage/stage.ts";

export interface Disturbances {
  cuts: number;
  /** Messages that were kept back for so long that leases ended meanwhile. */
  stalls: number;
  /** Sessions of Postgres that were ended. */
  terminated: number;
  /** Workers that were killed, each with all that it had in hand. */
  killed: number;
  /** Crashes of Postgres. */
  restarts: number;
}

const OUTAGES = ["terminate one", "terminate all", "kill", "restart"] as const;
type Deed = "cut" | "stall" | (typeof OUTAGES)[number];

/** Each comes in each round, so that a short soak has them all. An outage would end what stalls. */
function roundOf(random: Random): Deed[] {
  const places = OUTAGES.map((deed) => ({ deed, place: random.next() }));
  const outages = places.toSorted((a, b) => a.place - b.place).map(({ deed }) => deed);
  return [...outages, "stall", "stall", ...Array.from({ length: CUTS }, () => "cut" as const)];
}

/** With the pauses between them, about as long as a stall. */
const CUTS = 12;
const LONGEST_PAUSE_MS = 1_000;
const MOST_MESSAGES = 80;
/** Long enough for a lease to end and a tick to take the event, shorter than a delivery's deadline. */
const STALL_MS = 8_000;
/** Nobody speaks while every delivery waits for its next attempt. */
const LISTEN_MS = 1_000;

/** Goes on until `stop`; returns once whatever was disturbed is there again. */
export async function disturb(
  stage: Stage,
  random: Random,
  stop: AbortSignal,
): Promise<Disturbances> {
  const done: Disturbances = { cuts: 0, stalls: 0, terminated: 0, killed: 0, restarts: 0 };
  const stalls: Promise<Fate>[] = [];
  let round: Deed[] = [];
  for (;;) {
    await pause(random.next() * LONGEST_PAUSE_MS, undefined, { signal: stop }).catch(() => null);
    if (stop.aborted) break;
    if (round.length === 0) round = roundOf(random);
    const [deed = "cut"] = round.splice(0, 1);
    const cut = random.pick(["cut before", "cut half", "cut after"] as const);
    const which = random.next();
    const begun = await atMessage(stage, random.integer(1, MOST_MESSAGES), () =>
      perform(stage, deed, { cut, which, done }),
    );
    if (begun === null) continue;
    if (deed === "stall") stalls.push(begun.fate);
    else await begun.fate;
    if (deed === "kill") await stage.workerd.revived();
  }
  await Promise.all(stalls);
  return done;
}

/**
 * Does something while the so many'th message from now has not been passed on yet.
 *
 * @returns what becomes of that message; null when there were not so many.
 */
async function atMessage(
  { wire }: Stage,
  count: number,
  deed: () => Promise<Fate>,
): Promise<{ readonly fate: Promise<Fate> } | null> {
  let left = count;
  const fates: Promise<Fate>[] = [];
  const reached = new AbortController();
  wire.listen({
    at: () => --left <= 0,
    disturb: () => {
      const fate = deed();
      fates.push(fate);
      reached.abort();
      // The message must not be kept for ever: what went wrong is thrown by whoever awaits the fate.
      return fate.catch(() => "cut before");
    },
  });
  await pause(LISTEN_MS, undefined, { signal: reached.signal }).catch(() => null);
  wire.hangUp();
  const [fate] = fates;
  return fate === undefined ? null : { fate };
}

interface Details {
  readonly cut: Fate;
  /** Which session, from 0 up to, not including, 1. */
  readonly which: number;
  readonly done: Disturbances;
}

async function perform(stage: Stage, deed: Deed, { cut, which, done }: Details): Promise<Fate> {
  switch (deed) {
    case "cut":
      done.cuts += 1;
      return cut;
    case "stall":
      done.stalls += 1;
      await pause(STALL_MS);
      return "pass";
    case "terminate one":
      done.terminated += await terminateOne(stage, which);
      return "pass";
    case "terminate all":
      done.terminated += (await stage.rows(`select 1 ${SESSIONS}`)).length;
      await stage.terminateBackends();
      return "pass";
    case "kill":
      done.killed += 1;
      await stage.workerd.kill();
      return "cut after";
    case "restart":
      done.restarts += 1;
      await stage.restartPostgres();
      return "pass";
  }
}

/** Those of the Worker, or of the pooler before it. */
export const SESSIONS = `from pg_stat_activity where datname = current_database()
  and backend_type = 'client backend' and pid <> pg_backend_pid()`;

async function terminateOne(stage: Stage, which: number): Promise<number> {
  const sessions = await stage.rows(`select pid ${SESSIONS} order by pid`);
  const pid = sessions[Math.floor(which * sessions.length)]?.["pid"];
  if (pid === undefined) return 0;
  const ended = await stage.rows("select 1 where pg_terminate_backend($1)", [pid]);
  return ended.length;
}

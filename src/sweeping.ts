/**
 * The part of a tick that asks Stripe what was missed: page after page of the walks that are due,
 * until they are at their ends or the time is over. A failure here ends no tick.
 */
import { type Env, InvalidSetting, readSettings, type Settings } from "./config.ts";
import type { Connection } from "./db/connect.ts";
import type { Endpoints } from "./endpoints.ts";
import { explain } from "./faults.ts";
import type { EndpointRules } from "./inbox/rules.ts";
import { log } from "./log.ts";
import {
  claimSweep,
  findOverdue,
  type Gap,
  releaseSweep,
  type SweepFailed,
  sweepPage,
  type SweepPolicy,
  type SweptPage,
} from "./reconcile/sweep.ts";
import { OWN_ACCOUNT, YOUNGEST_MINUTES } from "./reconcile/sweep-runs.ts";
import { eventLists, type ListEvents } from "./stripe/lists.ts";

/** In one tick: Cloudflare keeps only so much of a run's log, and the table has every gap. */
const MOST_GAP_LINES = 50;
/** Longer than one call to Stripe and what is done with its answer. */
const LEASE_SECONDS = 60;

/** @param until when to stop, in epoch milliseconds. */
export async function sweep(
  db: Connection,
  endpoints: readonly EndpointRules[],
  settings: Settings,
  until: number,
): Promise<void> {
  const policy = policyOf(endpoints, settings);
  if (!settings.sweep || !policy) return;
  const list = eventLists(settings.sweep.api);
  await orLog(async () => {
    const lines = { left: MOST_GAP_LINES };
    while (Date.now() < until && (await walk(db, list, endpoints, policy, until, lines)));
  });
  await orLog(async () => {
    for (const overdue of await findOverdue(db, policy)) log("error", "sweep_overdue", overdue);
  });
}

/** Whose lists are swept; none where no API key is set. */
function sweptAccounts(
  endpoints: readonly Pick<EndpointRules, "accounts" | "handlers">[],
  { sweep: sweeping }: Pick<Settings, "sweep">,
): readonly string[] {
  if (!sweeping) return [];
  // Where nothing would be done with their events, their lists need not be read.
  const wanted = endpoints.some(
    ({ accounts, handlers }) => accounts === "connected" && Object.keys(handlers).length > 0,
  );
  return [OWN_ACCOUNT, ...(wanted ? sweeping.connectedAccounts : [])];
}

/** What is swept, and how long may pass until it counts as overdue; or why nothing is. */
export type Sweeping =
  | { readonly accounts: readonly string[]; readonly overdueSeconds: number }
  | { readonly off: string };

export function sweepingOf(endpoints: Endpoints, env: Env): Sweeping {
  try {
    const settings = readSettings(env);
    if (!settings.sweep) {
      return { off: "STRIPE_API_KEY is not set, or SWEEP_INTERVAL_MINUTES is 0" };
    }
    const { intervalMinutes } = settings.sweep;
    return {
      accounts: sweptAccounts(Object.values(endpoints), settings),
      overdueSeconds: (OVERDUE_INTERVALS * intervalMinutes + YOUNGEST_MINUTES) * 60,
    };
  } catch (error) {
    if (!(error instanceof InvalidSetting)) throw error;
    return { off: `${error.setting} is unusable: see settings` };
  }
}

/** Of intervals: a walk may take some ticks, and Stripe fail for a while. */
const OVERDUE_INTERVALS = 3;

function policyOf(
  endpoints: readonly EndpointRules[],
  { sweep: sweeping, process, retry }: Settings,
): SweepPolicy | null {
  if (!sweeping) return null;
  const { intervalMinutes, reachDays, since } = sweeping;
  const [, ...connectedAccounts] = sweptAccounts(endpoints, { sweep: sweeping });
  return {
    reach: { intervalMinutes, days: reachDays, since },
    connectedAccounts,
    timeouts: process.timeouts,
    leaseSeconds: LEASE_SECONDS,
    backoffCapSeconds: retry.backoffCapSeconds,
  };
}

async function orLog(work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (fault) {
    log("error", "sweep", explain(fault));
  }
}

/** One walk, as far as the time allows. @returns whether there was one. */
async function walk(
  db: Connection,
  list: ListEvents,
  endpoints: readonly EndpointRules[],
  policy: SweepPolicy,
  until: number,
  lines: { left: number },
): Promise<boolean> {
  let run = await claimSweep(db, policy);
  if (!run) return false;
  const startedAt = Date.now();
  const counts = { account: run.account, pages: 0, events: 0, missing: 0 };
  let failed: SweepFailed | null = null;
  while (run && !failed) {
    const page: SweptPage | SweepFailed = await sweepPage(db, run, list, endpoints, policy);
    if ("error" in page) failed = page;
    else {
      counts.pages += 1;
      counts.events += page.events;
      counts.missing += page.gaps.length;
      for (const gap of page.gaps) if (lines.left-- > 0) logGap(gap);
      run = page.next;
      if (run && Date.now() >= until) {
        await releaseSweep(db, run, policy);
        run = null;
      }
    }
  }
  const level = failed === null ? "info" : failed.byStripe ? "warn" : "error";
  log(level, "sweep", { ...counts, error: failed?.error, ms: Date.now() - startedAt });
  return true;
}

function logGap({ endpoint, id, type, lateSeconds }: Gap): void {
  log("warn", "sweep_gap", { endpoint, id, type, late_seconds: lateSeconds });
}

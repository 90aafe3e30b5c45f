/**
 * The part of a tick that asks Stripe what was missed: page after page of the walks that are due,
 * until they are at their ends or the time is over. A failure here ends no tick.
 */
import type { Settings } from "./config.ts";
import type { Connection } from "./db/connect.ts";
import { explain } from "./faults.ts";
import type { EndpointRules } from "./inbox/rules.ts";
import { log } from "./log.ts";
import {
  claimSweep,
  findOverdue,
  releaseSweep,
  sweepPage,
  type SweepPolicy,
} from "./reconcile/sweep.ts";
import { eventLists, type ListEvents } from "./stripe/lists.ts";

/** Longer than one call to Stripe and what is done with its answer. */
const LEASE_SECONDS = 60;

/** @param until when to stop, in epoch milliseconds. */
export async function sweep(
  db: Connection,
  endpoints: readonly EndpointRules[],
  settings: Settings,
  until: number,
): Promise<void> {
  if (!settings.sweep) return;
  const { api, connectedAccounts, intervalMinutes, reachDays, since } = settings.sweep;
  const policy: SweepPolicy = {
    reach: { intervalMinutes, days: reachDays, since },
    connectedAccounts,
    timeouts: settings.process.timeouts,
    leaseSeconds: LEASE_SECONDS,
    backoffCapSeconds: settings.retry.backoffCapSeconds,
  };
  try {
    const list = eventLists(api);
    while (Date.now() < until && (await walk(db, list, endpoints, policy, until)));
    for (const overdue of await findOverdue(db, policy)) log("error", "sweep_overdue", overdue);
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
): Promise<boolean> {
  const claimed = await claimSweep(db, policy);
  if (!claimed) return false;
  const startedAt = Date.now();
  const counts = { pages: 0, events: 0, missing: 0 };
  let error: string | null = null;
  let run = claimed;
  for (;;) {
    const page = await sweepPage(db, run, list, endpoints, policy);
    counts.events += page.events;
    counts.missing += page.missing;
    error = page.error;
    if (page.error === null) counts.pages += 1;
    if (page.next === null) break;
    run = page.next;
    if (Date.now() < until) continue;
    await releaseSweep(db, run, policy);
    break;
  }
  log(error === null ? "info" : "warn", "sweep", {
    account: claimed.account,
    ...counts,
    error: error ?? undefined,
    ms: Date.now() - startedAt,
  });
  return true;
}

/**
 * The nightly tick: purges what is old enough, batch after batch, until nothing is left or the
 * budget is spent. It can end anywhere; the next one goes on from there.
 */
import { type Env, readSettings, type Settings } from "./config.ts";
import type { Connection } from "./db/connect.ts";
import { withConnection } from "./db/with-connection.ts";
import { explain } from "./faults.ts";
import { deleteTombstones, purgePayloads } from "./inbox/retention.ts";
import { log } from "./log.ts";
import { deleteDoneCalls, deleteDoneMessages } from "./outbox/retention.ts";
import { deleteGaps, deleteSweeps } from "./reconcile/retention.ts";

/**
 * A queue keeps a message for up to 14 days, and a second copy must still be known by its call:
 * https://developers.cloudflare.com/queues/platform/limits/
 */
const MESSAGE_DAYS = 15;

export interface RetentionCounts {
  payloads: number;
  tombstones: number;
  messages: number;
  calls: number;
  gaps: number;
  sweeps: number;
}

export async function retain(
  env: Env,
  afterwards: (rest: Promise<unknown>) => void,
): Promise<RetentionCounts> {
  const startedAt = Date.now();
  const counts: RetentionCounts = {
    payloads: 0,
    tombstones: 0,
    messages: 0,
    calls: 0,
    gaps: 0,
    sweeps: 0,
  };
  try {
    const settings = readSettings(env);
    const { tickBudgetMs, timeouts } = settings.process;
    const time = { deadlineMs: tickBudgetMs + timeouts.statementTimeoutMs, afterwards };
    await withConnection(settings.database, time, ({ db }) =>
      purge(db, settings, startedAt + tickBudgetMs, counts),
    );
    log("info", "retention", { ...counts, ms: Date.now() - startedAt });
  } catch (fault) {
    log("error", "retention", { ...counts, ...explain(fault), ms: Date.now() - startedAt });
  }
  return counts;
}

async function purge(
  db: Connection,
  { process: { timeouts }, retention: { payloadDays, tombstoneDays } }: Settings,
  until: number,
  counts: RetentionCounts,
): Promise<void> {
  const steps = {
    payloads: () => purgePayloads(db, payloadDays, timeouts),
    tombstones: () => deleteTombstones(db, tombstoneDays, timeouts),
    messages: () => deleteDoneMessages(db, payloadDays, timeouts),
    calls: () => deleteDoneCalls(db, Math.max(tombstoneDays, MESSAGE_DAYS), timeouts),
    gaps: () => deleteGaps(db, tombstoneDays, timeouts),
    sweeps: () => deleteSweeps(db, tombstoneDays, timeouts),
  };
  for (const name of ["payloads", "tombstones", "messages", "calls", "gaps", "sweeps"] as const) {
    for (let done = 1; done > 0 && Date.now() < until; counts[name] += done) {
      done = await steps[name]();
    }
  }
}

/**
 * The nightly tick: purges what is old enough, batch after batch, until nothing is left or the
 * budget is spent. It can end anywhere; the next one goes on from there.
 */
import { type Env, readSettings, type Settings } from "./config.ts";
import type { Connection } from "./db/connect.ts";
import { withConnection } from "./db/with-connection.ts";
import { explain } from "./faults.ts";
import { deleteHours, deleteTombstones, purgePayloads } from "./inbox/retention.ts";
import { type Fields, log } from "./log.ts";
import { deleteDoneCalls, deleteDoneMessages } from "./outbox/retention.ts";
import { deleteGaps, deleteSweeps } from "./reconcile/retention.ts";

/**
 * A queue keeps a message for up to 14 days, and a second copy must still be known by its call:
 * https://developers.cloudflare.com/queues/platform/limits/
 */
const MESSAGE_DAYS = 15;

export type RetentionCounts = Record<
  "payloads" | "tombstones" | "messages" | "calls" | "gaps" | "sweeps" | "hours",
  number
>;

export interface Retained {
  readonly counts: RetentionCounts;
  /** Null: it did not fail. */
  readonly fault: Fields | null;
}

export async function retain(
  env: Env,
  afterwards: (rest: Promise<unknown>) => void,
): Promise<Retained> {
  const startedAt = Date.now();
  const counts: RetentionCounts = {
    payloads: 0,
    tombstones: 0,
    messages: 0,
    calls: 0,
    gaps: 0,
    sweeps: 0,
    hours: 0,
  };
  try {
    const settings = readSettings(env);
    const { tickBudgetMs, timeouts } = settings.process;
    const time = { deadlineMs: tickBudgetMs + timeouts.statementTimeoutMs, afterwards };
    await withConnection(settings.database, time, ({ db }) =>
      purge(db, settings, startedAt + tickBudgetMs, counts),
    );
    log("info", "retention", { ...counts, ms: Date.now() - startedAt });
    return { counts, fault: null };
  } catch (caught) {
    const fault = explain(caught);
    log("error", "retention", { ...counts, ...fault, ms: Date.now() - startedAt });
    return { counts, fault };
  }
}

async function purge(
  db: Connection,
  { process: { timeouts }, retention: { payloadDays, tombstoneDays } }: Settings,
  until: number,
  counts: RetentionCounts,
): Promise<void> {
  const steps: readonly (readonly [keyof RetentionCounts, () => Promise<number>])[] = [
    ["payloads", () => purgePayloads(db, payloadDays, timeouts)],
    ["tombstones", () => deleteTombstones(db, tombstoneDays, timeouts)],
    ["messages", () => deleteDoneMessages(db, payloadDays, timeouts)],
    ["calls", () => deleteDoneCalls(db, Math.max(tombstoneDays, MESSAGE_DAYS), timeouts)],
    ["gaps", () => deleteGaps(db, tombstoneDays, timeouts)],
    ["sweeps", () => deleteSweeps(db, tombstoneDays, timeouts)],
    ["hours", () => deleteHours(db, tombstoneDays, timeouts)],
  ];
  for (const [name, step] of steps) {
    for (let done = 1; done > 0 && Date.now() < until; counts[name] += done) done = await step();
  }
}

/**
 * Ours: the real Worker in workerd, one tick called after the other. Its handlers are the product's,
 * and look for discrepancies, too.
 *
 * Not imitated: Hyperdrive, a database that is far away, several Workers.
 */
import { type Bench, withClient } from "../bench.ts";
import { fillWithWaiting } from "../waiting-events.ts";
import { type Backlog, type Contestant, untilStopped } from "./contestant.ts";

/** Events that wait in our own inbox. */
export const inbox: Backlog = {
  name: "drain_inbox",
  fill: (databaseUrl, events) =>
    withClient(databaseUrl, (client) => fillWithWaiting(client, { count: events, name: "drain" })),
};

export const COUNT_PROCESSED =
  "select count(*)::int from webhook_inbox where outcome = 'processed'";

export interface Ours {
  readonly eachAlone: Contestant;
  readonly batched: Contestant;
}

export function ours(bench: Bench): Ours {
  return {
    eachAlone: worker(bench, "ours, one transaction per event", { PROCESS_BATCH: "off" }),
    batched: worker(bench, "ours, optimistic batches", {}),
  };
}

function worker(
  bench: Bench,
  name: string,
  settings: Readonly<Record<string, string>>,
): Contestant {
  return {
    name,
    handler: "ours",
    completion: "atomic",
    backlog: inbox,
    countDone: COUNT_PROCESSED,
    run: (databaseUrl, stop) =>
      bench.withWorker(databaseUrl, settings, async ({ tick }) => {
        const stopped = untilStopped(stop);
        while (!stop.aborted) {
          // A tick outlasts a slice; its Worker is ended under it, and then it fails.
          const ticking = tick().catch((error: unknown) => {
            if (!stop.aborted) throw error;
          });
          await Promise.race([ticking, stopped]);
        }
      }),
  };
}

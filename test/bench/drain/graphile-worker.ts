/**
 * graphile-worker, eight jobs at a time, with its local queue and completions in batches: its fastest
 * settings. It completes a job after the handler, in a statement of its own.
 *
 * Not measured: failing jobs, named queues, several processes.
 */
import { Logger, type RunnerOptions, makeWorkerUtils, run } from "graphile-worker";
import { Pool } from "pg";
import { withClient } from "../bench.ts";
import { type Backlog, type Contestant, type Handler, untilStopped } from "./contestant.ts";
import {
  type Effects,
  type PaidEvent,
  PROCESSED_EVENTS,
  preparedOnce,
  textbookOnce,
  waitingEvent,
} from "./effects.ts";

const TASK = "book";
const LANES = 8;
/** Of 9 to 500 jobs, and 0 to 250 ms, these came out fastest. */
const LOCAL_QUEUE = 500;
const COMPLETE_DELAY_MS = 50;
const ADDED_AT_ONCE = 1_000;

declare global {
  namespace GraphileWorker {
    interface Tasks {
      readonly [TASK]: PaidEvent;
    }
  }
}

const logger = new Logger(() => () => undefined);

const backlog: Backlog = {
  name: "drain_graphile_worker",
  fill: async (databaseUrl, events) => {
    await withClient(databaseUrl, (client) => client.query(PROCESSED_EVENTS));
    const utils = await makeWorkerUtils({ connectionString: databaseUrl, logger });
    try {
      await utils.migrate();
      for (let from = 0; from < events; from += ADDED_AT_ONCE) {
        const count = Math.min(ADDED_AT_ONCE, events - from);
        await utils.addJobs(
          Array.from({ length: count }, (_, at) => ({
            identifier: TASK,
            payload: waitingEvent(from + at),
          })),
        );
      }
    } finally {
      await utils.release();
    }
  },
};

export const graphileWorker: readonly Contestant[] = [
  contestant("textbook", textbookOnce),
  contestant("prepared", preparedOnce),
];

function contestant(handler: Handler, effects: Effects): Contestant {
  return {
    name: "graphile-worker, local queue, batched completion",
    handler,
    completion: "not atomic",
    backlog,
    countDone: null,
    run: async (databaseUrl, stop) => {
      // What its documentation recommends where handlers use its pool.
      const pool = new Pool({ connectionString: databaseUrl, max: LANES + 2 });
      // It asks for the listeners; what matters fails a job or the books.
      pool.on("error", console.error).on("connect", (client) => client.on("error", console.error));
      try {
        const runner = await run(options(pool, effects));
        await untilStopped(stop);
        await runner.stop();
      } finally {
        // It may still be giving back what its local queue holds.
        await pool.end();
      }
    },
  };
}

function options(pgPool: Pool, effects: Effects): RunnerOptions {
  return {
    pgPool,
    noHandleSignals: true,
    preset: {
      worker: {
        logger,
        concurrentJobs: LANES,
        localQueue: { size: LOCAL_QUEUE },
        completeJobBatchDelay: COMPLETE_DELAY_MS,
      },
    },
    taskList: {
      [TASK]: (payload, { withPgClient }) => withPgClient((client) => effects(client, payload)),
    },
  };
}

/**
 * pg-boss, with eight lanes. Those whose completion is atomic fetch 50 jobs at a time, and complete
 * them in the transaction of the effects (`complete(…, { db })`): `work()` would fetch them one by
 * one. Where the library completes a batch after its handler, `work()` runs as documented, with
 * `burstWhenBatchFull`, so that no lane waits while jobs do.
 *
 * Not measured: failing jobs, several processes.
 */
import { Client, Pool } from "pg";
import { type Db, type Job, PgBoss } from "pg-boss";
import { withClient } from "../bench.ts";
import { type Backlog, type Contestant, type Handler, untilStopped } from "./contestant.ts";
import {
  type Effects,
  type PaidEvent,
  PROCESSED_EVENTS,
  inTransaction,
  oneStatement,
  prepared,
  preparedOnce,
  textbook,
  textbookOnce,
  waitingEvent,
} from "./effects.ts";

const LANES = 8;
const BATCH = 50;
const QUEUE = "events";
const INSERTED_AT_ONCE = 1_000;

const backlog: Backlog = {
  name: "drain_pg_boss",
  fill: async (databaseUrl, events) => {
    await withClient(databaseUrl, (client) => client.query(PROCESSED_EVENTS));
    await withBoss(databaseUrl, async (boss) => {
      await boss.createQueue(QUEUE);
      for (let from = 0; from < events; from += INSERTED_AT_ONCE) {
        const count = Math.min(INSERTED_AT_ONCE, events - from);
        await boss.insert(
          QUEUE,
          Array.from({ length: count }, (_, at) => ({ data: waitingEvent(from + at) })),
        );
      }
    });
  },
};

const COUNT_COMPLETED = "select count(*)::int from pgboss.job where state = 'completed'";

export const pgBossEachAlone: readonly Contestant[] = [
  eachAlone("textbook", textbook),
  eachAlone("prepared", prepared),
];
export const pgBossNotAtomic: readonly Contestant[] = [
  completedAfterwards("textbook", textbookOnce),
  completedAfterwards("prepared", preparedOnce),
];
export const pgBossBatches: readonly Contestant[] = [
  batch("one statement", oneStatement),
  batch("prepared", prepared),
];

function batch(handler: Handler, effects: Effects): Contestant {
  return {
    name: `pg-boss, ${BATCH} events and complete({ db }) in one transaction`,
    handler,
    completion: "atomic",
    backlog,
    countDone: COUNT_COMPLETED,
    run: (databaseUrl, stop) =>
      inLanes(databaseUrl, stop, async ({ boss, client, db }, jobs) => {
        const ids = jobs.map(({ id }) => id);
        await inTransaction(client, async () => {
          for (const { data } of jobs) await effects(client, data);
          await boss.complete(QUEUE, ids, null, { db });
        });
      }),
  };
}

function eachAlone(handler: Handler, effects: Effects): Contestant {
  return {
    name: "pg-boss, complete({ db }) in each event's transaction",
    handler,
    completion: "atomic",
    backlog,
    countDone: COUNT_COMPLETED,
    run: (databaseUrl, stop) =>
      inLanes(databaseUrl, stop, async ({ boss, client, db }, jobs) => {
        for (const { id, data } of jobs) {
          if (stop.aborted) return;
          await inTransaction(client, async () => {
            await effects(client, data);
            await boss.complete(QUEUE, id, null, { db });
          });
        }
      }),
  };
}

function completedAfterwards(handler: Handler, effects: Effects): Contestant {
  return {
    name: `pg-boss, batches of ${BATCH}, completed by the library`,
    handler,
    completion: "not atomic",
    backlog,
    countDone: null,
    run: (databaseUrl, stop) =>
      withBoss(databaseUrl, async (boss) => {
        const pool = new Pool({ connectionString: databaseUrl, max: LANES });
        try {
          const options = {
            batchSize: BATCH,
            localConcurrency: LANES,
            pollingIntervalSeconds: 0.5,
            burstWhenBatchFull: true,
          };
          await boss.work<PaidEvent>(QUEUE, options, async (jobs) => {
            const client = await pool.connect();
            try {
              for (const { data } of jobs) await effects(client, data);
            } finally {
              client.release();
            }
          });
          await untilStopped(stop);
          await boss.offWork(QUEUE, { wait: true });
        } finally {
          await pool.end();
        }
      }),
  };
}

interface Lane {
  readonly boss: PgBoss;
  readonly client: Client;
  /** The lane's connection, as pg-boss is given it. */
  readonly db: Db;
}

async function inLanes(
  databaseUrl: string,
  stop: AbortSignal,
  work: (lane: Lane, jobs: readonly Job<PaidEvent>[]) => Promise<void>,
): Promise<void> {
  await withBoss(databaseUrl, async (boss) => {
    const lanes = Array.from({ length: LANES }, async () => {
      const client = new Client({ connectionString: databaseUrl });
      await client.connect();
      const db: Db = { executeSql: (text, values) => client.query(text, values) };
      try {
        while (!stop.aborted) {
          const jobs = await boss.fetch<PaidEvent>(QUEUE, { batchSize: BATCH, db });
          if (jobs.length === 0) return;
          await work({ boss, client, db }, jobs);
        }
      } finally {
        await client.end();
      }
    });
    await Promise.all(lanes);
  });
}

async function withBoss(databaseUrl: string, use: (boss: PgBoss) => Promise<void>): Promise<void> {
  const boss = new PgBoss({
    connectionString: databaseUrl,
    max: LANES,
    // Upkeep would only cost it time.
    supervise: false,
    schedule: false,
  });
  // Without a listener an error would end this process; what matters fails a call or the books.
  boss.on("error", (error) => console.error(error));
  await boss.start();
  try {
    await use(boss);
  } finally {
    await boss.stop();
  }
}

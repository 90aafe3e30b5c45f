/**
 * Cuts database connections of the receiver in the middle of a transaction, as a failover or an
 * impatient administrator does, so that redelivery has something to mend.
 */
import { setTimeout as pause } from "node:timers/promises";
import { Client } from "pg";

const POLL_MS = 2;
/** Give up when the receiver has no transaction open for so long. */
const PATIENCE_MS = 3_000;

/** Cuts one connection that has a transaction open; false when there was none to cut. */
export async function cutConnection(databaseUrl: string): Promise<boolean> {
  const client = new Client({
    connectionString: databaseUrl,
    application_name: "simulated stripe",
  });
  await client.connect();
  try {
    const deadline = Date.now() + PATIENCE_MS;
    while (Date.now() < deadline) {
      const { rowCount } = await client.query(
        `select pg_terminate_backend(pid) from pg_stat_activity
          where datname = current_database() and backend_type = 'client backend'
            and application_name <> 'simulated stripe' and xact_start is not null
          order by random() limit 1`,
      );
      if (rowCount === 1) return true;
      await pause(POLL_MS);
    }
    return false;
  } finally {
    await client.end();
  }
}

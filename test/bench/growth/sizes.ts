/**
 * What an event takes on the disk: `invoice.paid` of 2 kB, right after they were stored, and after
 * each was claimed and marked by the Worker's own statements; with all indexes. No vacuum in
 * between but what autovacuum does by itself, and once more after one.
 *
 * Not measured: what is freed later, by retention, and the business tables.
 */
import type { Client } from "pg";
import { type Bench, type Extent, say, withClient } from "../bench.ts";
import { printTable } from "../figures.ts";
import type { Result } from "../results.ts";
import { fillWithWaiting } from "../waiting-events.ts";
import { drainByMarks } from "./drained.ts";

/** What an event may take when it is processed, as a share of what it took when it was stored. */
const GOAL = 1.1;
const CONNECTIONS = 2;

interface Part {
  readonly name: string;
  readonly bytes: number;
}

export async function measureSizes(
  bench: Bench,
  { events }: Pick<Extent, "events">,
): Promise<readonly Result[]> {
  const url = await bench.database("sizes");
  return withClient(url, async (client) => {
    await fillWithWaiting(client, { count: events, name: "size" });
    const stored = await partsOf(client);
    await drainByMarks(url, CONNECTIONS);
    const marked = await partsOf(client);
    say(`autovacuum came ${await autovacuums(client)} times`);
    await client.query("vacuum webhook_inbox");
    const vacuumed = await partsOf(client);
    print(events, { stored, marked, vacuumed });

    const perEvent = (parts: readonly Part[]): number => sum(parts) / events;
    const growth = sum(marked) / sum(stored);
    return [
      {
        what: "bytes per processed event, indexes included",
        goal: `at most ${GOAL.toFixed(2)} × those of a stored one`,
        peers: "",
        floor: `stored: ${perEvent(stored).toFixed(0)} bytes`,
        result:
          `${perEvent(marked).toFixed(0)} bytes, ${growth.toFixed(2)} ×; ` +
          `${perEvent(vacuumed).toFixed(0)} after a vacuum`,
        holds: growth <= GOAL,
      },
    ];
  });
}

/** The table, what it keeps aside, and each index. */
async function partsOf(client: Client): Promise<readonly Part[]> {
  const { rows } = await client.query<{ name: string; bytes: string }>(
    `select name, bytes from (
       select 'heap' as name, pg_table_size(oid) - coalesce(
         pg_total_relation_size(nullif(reltoastrelid, 0)), 0) as bytes, 0 as place
       from pg_class where oid = 'webhook_inbox'::regclass
       union all
       select 'toast', pg_total_relation_size(reltoastrelid), 1
       from pg_class where oid = 'webhook_inbox'::regclass
       union all
       select indexrelid::regclass::text, pg_relation_size(indexrelid), 2
       from pg_index where indrelid = 'webhook_inbox'::regclass) as part
     order by place, name`,
  );
  return rows.map(({ name, bytes }) => ({ name, bytes: Number(bytes) }));
}

async function autovacuums(client: Client): Promise<number> {
  const { rows } = await client.query<{ times: string }>(
    "select autovacuum_count as times from pg_stat_user_tables where relname = 'webhook_inbox'",
  );
  return Number(rows[0]?.times);
}

function sum(parts: readonly Part[]): number {
  return parts.reduce((total, { bytes }) => total + bytes, 0);
}

function print(events: number, looks: Readonly<Record<string, readonly Part[]>>): void {
  const [first = []] = Object.values(looks);
  const cell = (parts: readonly Part[], wanted: string): string =>
    ((parts.find(({ name }) => name === wanted)?.bytes ?? Number.NaN) / events).toFixed(0);
  printTable(
    [`bytes per event, of ${events}`, ...Object.keys(looks)],
    [
      ...first.map(({ name }) => [name, ...Object.values(looks).map((parts) => cell(parts, name))]),
      ["all", ...Object.values(looks).map((parts) => (sum(parts) / events).toFixed(0))],
    ],
  );
}

/**
 * A drain while somebody keeps an old snapshot open, as a backup or a forgotten transaction does:
 * nothing of what the drain leaves behind can be removed, neither by vacuum nor on the way. How many
 * dead rows there are for each event, how large the table becomes, and what they do to claims.
 *
 * Not imitated: handlers and their tables; a snapshot held for hours.
 */
import type { Client } from "pg";
import { type Bench, withClient } from "../bench.ts";
import { percentile, printTable } from "../figures.ts";
import type { Result } from "../results.ts";
import { drainByMarks } from "./drained.ts";

const EVENTS = 100_000;
const CONNECTIONS = 2;
/** A claim and a mark each leave a row behind; no more than that. */
const MOST_DEAD = 2;
/** So many claims are a beginning, or an end. */
const ENDS = 100;

interface Look {
  readonly dead: number;
  readonly bytes: number;
}

export async function measureHeldSnapshot(bench: Bench): Promise<readonly Result[]> {
  const url = await bench.database("held_snapshot");
  return withClient(url, async (client) => {
    await client.query(FILL, [EVENTS]);
    await client.query("vacuum (analyze) webhook_inbox");
    const before = await look(client);
    const { claims, after } = await withClient(url, async (reader) => {
      await reader.query("begin isolation level repeatable read");
      await reader.query("select count(*) from webhook_inbox");
      const times = await drainByMarks(url, CONNECTIONS);
      return { claims: times, after: await look(client) };
    });
    await client.query("vacuum webhook_inbox");
    const vacuumed = await look(client);
    print({ before: before, "drained, snapshot held": after, "snapshot gone, vacuumed": vacuumed });
    return [result(claims, after, before)];
  });
}

/** No bound is asked of the claims; what became of them is told. */
function result(claims: readonly number[], after: Look, before: Look): Result {
  const first = claims.slice(0, ENDS);
  const last = claims.slice(-ENDS);
  const change = (percent: number): string =>
    `p${percent} from ${percentile(first, percent).toFixed(1)} ` +
    `to ${percentile(last, percent).toFixed(1)} ms`;
  const dead = after.dead / EVENTS;
  return {
    what: `dead rows of a drain of ${EVENTS.toLocaleString("en")} with a snapshot held open`,
    goal: `at most ${MOST_DEAD} per event`,
    peers: "",
    floor: `${(before.bytes / EVENTS).toFixed(0)} bytes per event before`,
    result:
      `${dead.toFixed(2)} per event, ${(after.bytes / before.bytes).toFixed(1)} × the bytes; ` +
      `a claim's ${change(50)}, ${change(95)}`,
    holds: dead <= MOST_DEAD,
  };
}

async function look(client: Client): Promise<Look> {
  // What the others counted is told when they have gone, and ours when we say so.
  await client.query("select pg_stat_force_next_flush()");
  const { rows } = await client.query<{ dead: string; bytes: string }>(
    `select n_dead_tup as dead, pg_total_relation_size(relid) as bytes
     from pg_stat_user_tables where relname = 'webhook_inbox'`,
  );
  return { dead: Number(rows[0]?.dead), bytes: Number(rows[0]?.bytes) };
}

function print(looks: Readonly<Record<string, Look>>): void {
  printTable(
    [`drain of ${EVENTS} small events`, "dead rows per event", "bytes per event, all indexes"],
    Object.entries(looks).map(([what, { dead, bytes }]) => [
      what,
      (dead / EVENTS).toFixed(2),
      (bytes / EVENTS).toFixed(0),
    ]),
  );
}

const FILL = `
  insert into webhook_inbox (endpoint, event_id, event_type, object_id, payload, received_at,
    available_at)
  select 'billing', 'evt_held_' || (1000000000 + n), 'invoice.paid', 'in_held_' || n,
    jsonb_build_object('data', jsonb_build_object('object',
      jsonb_build_object('customer', 'cus_held_' || n))), at, at
  from generate_series(1, $1::int) n
  cross join lateral (select now() - ($1::int - n) * interval '1 millisecond' as at)`;

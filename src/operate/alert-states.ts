/**
 * What operators were told last, of each thing that is watched. Whoever tells it claims it first,
 * under a lease: ticks may overlap, and it is told once. Told again is only what nobody knows to
 * have been told, since the Worker or the other side broke off.
 */
import { type SQL, sql } from "drizzle-orm";
import type { Connection, Row, Write } from "../db/connect.ts";
import { numberOf, textOf } from "../db/rows.ts";
import { alertStates as states } from "../db/schema.ts";
import { inOneFlight, insideTransaction, type Timeouts } from "../db/transaction.ts";
import { type Concern, isToBeTold, type Told } from "./alerts.ts";

/** A concern that is ours to tell, until the lease ends. */
export interface ClaimedConcern {
  readonly concern: Concern;
  readonly fence: number;
}

/** Longer than it takes to tell them, all at once. */
const LEASE_SECONDS = 60;
const BACKOFF_CAP_SECONDS = 900;
/** The `last_error` of what was logged, and told to nobody, since there was nobody to tell. */
const NOBODY = "NoUrl";

/**
 * Those of the concerns that are to be told, as ours. Two round trips; one when there are none.
 *
 * @param listener whether there is somebody to tell: who is new is told what began before.
 */
export async function claimToTell(
  db: Connection,
  concerns: readonly Concern[],
  listener: boolean,
  timeouts: Timeouts,
): Promise<readonly ClaimedConcern[]> {
  const [rows = []] = await inOneFlight(db, timeouts, [
    sql`select name, firing, level, fence, attempts, last_error, told_at is not null as told,
        coalesce(extract(epoch from now() - told_at), 0)::float8 as seconds
      from ${states}`,
  ]);
  const known = new Map(rows.map((row) => [textOf(row, "name"), row]));
  const changes = concerns.flatMap((concern) => {
    const row = known.get(concern.name);
    const fence = row ? numberOf(row, "fence") : 0;
    const told = row ? toTold(row, listener) : null;
    if (isToBeTold(concern, told)) return [{ concern, write: claim(concern.name, fence) }];
    const shrank = told !== null && told.firing === concern.firing && concern.level < told.level;
    return shrank ? [{ concern, write: lower(concern, fence) }] : [];
  });
  if (changes.length === 0) return [];
  const changed = await inOneFlight(
    db,
    timeouts,
    changes.map(({ write }) => write),
  );
  return changes.flatMap(({ concern }, index) => {
    const fence = changed[index]?.[0]?.["fence"];
    return typeof fence === "number" ? [{ concern, fence }] : [];
  });
}

function toTold(row: Row, listener: boolean): Told | null {
  const toNobody = row["last_error"] === NOBODY;
  if (listener && toNobody) return null;
  const uncertain = numberOf(row, "attempts") > 0;
  if (row["told"] !== true && !uncertain) return null;
  return {
    firing: row["firing"] === true,
    level: numberOf(row, "level"),
    secondsAgo: numberOf(row, "seconds"),
    uncertain,
  };
}

/** What came of telling it: an error is a code. */
export type Telling = "told" | "nobody to tell" | { readonly error: string };

export function recordTold({ concern, fence }: ClaimedConcern, telling: Telling): Write {
  const { name, firing, level } = concern;
  const nobody = telling === "nobody to tell" ? NOBODY : null;
  const outcome =
    typeof telling === "string"
      ? sql`firing = ${firing}::boolean, level = ${level}::bigint, told_at = now(), attempts = 0,
          last_error = ${nobody}::text, available_at = now()`
      : sql`last_error = ${telling.error}::text, available_at = now()
          + least(${BACKOFF_CAP_SECONDS}::int, 30 * 2 ^ least(attempts, 10)) * interval '1 second'`;
  return sql`update ${states} set ${outcome}, fence = ${states.fence} + 1
    where name = ${name} and ${states.fence} = ${fence}::bigint and ${insideTransaction}`;
}

function claim(name: string, fence: number): SQL {
  const lease = sql`now() + ${LEASE_SECONDS}::int * interval '1 second'`;
  return sql`
    insert into ${states} (name, available_at, attempts, fence)
    select ${name}::text, ${lease}, 1, 1 where ${insideTransaction}
    on conflict (name) do update set available_at = ${lease}, attempts = ${states.attempts} + 1,
      fence = ${states.fence} + 1
    where ${states.fence} = ${fence}::bigint and ${states.availableAt} <= now()
    returning ${states.fence}::int as fence`;
}

/** There is less of it: nobody need know, but growth counts from there. */
function lower({ name, level }: Concern, fence: number): SQL {
  return sql`update ${states} set level = ${level}::bigint
    where name = ${name} and ${states.fence} = ${fence}::bigint and ${insideTransaction}`;
}

/** What stands between the Worker and the database, told by what becomes of our statements. */
import { sql } from "drizzle-orm";
import type { Connection, Database } from "../db/connect.ts";
import { textOf } from "../db/rows.ts";
import * as schema from "../db/schema.ts";
import { inOneFlight } from "../db/transaction.ts";
import { fail, type Finding, ok, warn } from "./finding.ts";
import { lookAt, read, TIMEOUTS } from "./looking.ts";

/** What is timed: in each round so many statements one by one, and so many at once. */
const ROUNDS = 3;
const TRIPS = 4;
const FLIGHT = 8;

/** Adds to the findings. @throws DatabaseUnavailable */
export async function examineBetween(
  db: Connection,
  findings: Finding[],
  road: Pick<Database, "pipeline" | "webSocket">,
): Promise<void> {
  await lookAt(db, findings, "transactions", () => transactions(db));
  await lookAt(db, findings, "transaction-local settings", () => localSettings(db));
  await lookAt(db, findings, "pipelining", () => pipelining(db, road));
  await lookAt(db, findings, "query caching", () => caching(db));
}

async function transactions(db: Connection): Promise<Finding> {
  const check = "transactions";
  const [[row] = []] = await inOneFlight(db, TIMEOUTS, [
    sql`select current_setting('transaction_isolation') as isolation,
      current_setting('transaction_read_only') = 'on' or pg_is_in_recovery() as read_only`,
  ]);
  const isolation = row ? textOf(row, "isolation") : "none";
  if (row?.["read_only"] === true) {
    return fail(
      check,
      "they are read-only: a replica, or default_transaction_read_only",
      "Connect to the primary",
    );
  }
  if (isolation !== "read committed") {
    return fail(
      check,
      `they run at ${isolation}, though we ask for read committed`,
      "Find what stands between: duplicates would be answered with errors",
    );
  }
  return ok(check, "read committed, and they may write");
}

async function localSettings(db: Connection): Promise<Finding> {
  const check = "transaction-local settings";
  const settings = sql`select current_setting('lock_timeout') as lock,
    current_setting('statement_timeout') as statement,
    current_setting('stripe_inbox.transaction', true) as open`;
  const [[inside] = []] = await inOneFlight(db, TIMEOUTS, [settings]);
  const [outside] = await read(db, settings);
  const hold =
    inside?.["lock"] === `${TIMEOUTS.lockTimeoutMs}ms` &&
    inside["statement"] === `${TIMEOUTS.statementTimeoutMs}ms` &&
    inside["open"] === "open";
  if (!hold) {
    return fail(
      check,
      "they do not reach the transaction's statements",
      "The pooler must be in transaction mode, or none: every receive would fail",
    );
  }
  if (outside?.["open"] === "open" || outside?.["statement"] === inside["statement"]) {
    return fail(
      check,
      "they outlive their transaction",
      "Find what stands between: a statement behind a lost BEGIN would commit by itself",
    );
  }
  return ok(check, "they hold inside, and end with it");
}

async function pipelining(
  db: Connection,
  { pipeline, webSocket }: Pick<Database, "pipeline" | "webSocket">,
): Promise<Finding> {
  const check = "pipelining";
  const one = db.compile(sql`select 1`);
  await Promise.all(db.send([one]));
  // The fastest of each: a machine that is busy for a moment blames nobody.
  let [tripMs, together] = [Infinity, Infinity];
  for (let round = 0; round < ROUNDS; round++) {
    const alone = await timed(async () => {
      for (let n = 0; n < TRIPS; n++) await Promise.all(db.send([one]));
    });
    tripMs = Math.min(tripMs, alone / TRIPS);
    // Each with a Sync of its own: what shares one, nobody can part.
    const atOnce = await timed(() =>
      Promise.all(Array.from({ length: FLIGHT }, () => db.send([one])).flat()),
    );
    together = Math.min(together, atOnce);
  }
  const trips = (together / Math.max(tripMs, 0.1)).toFixed(1);
  const seen = `a round trip takes ${tripMs.toFixed(1)} ms; ${FLIGHT} statements at once take ${together} ms`;
  if (webSocket) return ok(check, `none through a WebSocket; ${seen}`);
  if (!pipeline) return warn(check, `off; ${seen}`, "Without PIPELINE = off, answers come sooner");
  // Too short to tell from noise.
  if (tripMs >= 3 && together > (FLIGHT / 2) * tripMs) {
    return warn(
      check,
      `it gains nothing: ${seen}, ${trips} round trips`,
      "Something in between sends statements one by one",
    );
  }
  return ok(check, seen);
}

/** In milliseconds. A Worker's clock stands still but for what it waits for. */
async function timed(work: () => Promise<unknown>): Promise<number> {
  const startedAt = Date.now();
  await work();
  return Date.now() - startedAt;
}

/** Twice, so that whatever keeps answers has one to keep. */
async function caching(db: Connection): Promise<Finding> {
  const check = "query caching";
  const written = sql`select detail ->> 'nonce' as nonce from ${schema.heartbeats}
    where name = 'doctor'`;
  const nonce = crypto.randomUUID();
  await read(db, written);
  await read(db, written);
  await inOneFlight(db, TIMEOUTS, [
    sql`insert into ${schema.heartbeats} (name, started_at, completed_at, detail)
      values ('doctor', now(), now(), jsonb_build_object('nonce', ${nonce}::text))
      on conflict (name) do update set started_at = now(), completed_at = now(),
        detail = excluded.detail`,
  ]);
  const [row] = await read(db, written);
  return row?.["nonce"] === nonce
    ? ok(check, "off: what was written is read")
    : fail(
        check,
        "on: a SELECT was answered with the past",
        "npx wrangler hyperdrive update <id> --caching-disabled true",
      );
}

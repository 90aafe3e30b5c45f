/** What every answer to an operator needs: the database for a while, the query, and who it is. */
import type { Context } from "hono";
import { readDatabase } from "../config.ts";
import type { Connection } from "../db/connect.ts";
import { withConnection } from "../db/with-connection.ts";
import type { Timeouts } from "../db/transaction.ts";
import { explain } from "../faults.ts";
import { log } from "../log.ts";
import { type By, type Done, inBatches } from "../operate/actions.ts";
import type { DoorEnv } from "./answers.ts";
import { BadRequest } from "./ops-fields.ts";

/** An operator waits as long as Stripe does; each statement is to take a tenth of a second. */
const DEADLINE_MS = 9_000;
export const TIMEOUTS = { lockTimeoutMs: 3_000, statementTimeoutMs: 8_000 };

/** An id, what was shown, and a reason of 500 characters in up to 12 bytes each. */
export const BODY_LIMITS = { bytes: 16_384, ms: 5_000 };

export const afterwardsOf =
  (c: Context<DoorEnv>) =>
  (rest: Promise<unknown>): void =>
    c.executionCtx.waitUntil(rest);

export function onDatabase<T>(
  c: Context<DoorEnv>,
  work: (db: Connection) => Promise<T>,
): Promise<T> {
  const time = { deadlineMs: DEADLINE_MS, afterwards: afterwardsOf(c) };
  return withConnection(readDatabase(c.env), time, ({ db }) => work(db));
}

/** @throws BadRequest for what is given twice: which of them is meant? */
export function queryOf(c: Context<DoorEnv>): Record<string, string> {
  return once(Object.entries(c.req.queries()));
}

/** @throws BadRequest */
export function once(given: readonly (readonly [string, readonly string[]])[]) {
  const single = given.map(([name, values]) => {
    const [value = ""] = values;
    if (values.length > 1) throw new BadRequest(`${name.slice(0, 100)}: is given twice`);
    return [name, value] as const;
  });
  return Object.fromEntries(single);
}

/** @throws BadRequest when nobody says who it is. */
export function actor(c: Context<DoorEnv>, why: string): By {
  const { operator, via } = c.get("identity");
  if (operator === null) {
    throw new BadRequest("Say who you are, for the record: header X-Operator.");
  }
  return { operator, via, why };
}

/** A batch takes a second or two; what is left of the deadline then is for the answer. */
const BATCHES_MS = { end: 8_000, least: 3_000 };

/**
 * All that was agreed to, batch after batch, as far as the time for an answer allows. No statement of
 * a batch may take longer than what is left of it.
 */
export function together(
  c: Context<DoorEnv>,
  agreed: number,
  why: string,
  take: (db: Connection, most: number, by: By, timeouts: Timeouts) => Promise<Done>,
): Promise<Done> {
  const by = actor(c, why);
  const endsAt = Date.now() + BATCHES_MS.end;
  const left = (): number => endsAt - Date.now();
  const timeouts = (): Timeouts => {
    const ms = Math.max(1, Math.floor(left()));
    return { lockTimeoutMs: Math.min(TIMEOUTS.lockTimeoutMs, ms), statementTimeoutMs: ms };
  };
  return onDatabase(c, (db) =>
    inBatches(
      agreed,
      () => left() > BATCHES_MS.least,
      (most) => take(db, most, by, timeouts()),
      (fault) => log("error", "action_stopped", explain(fault)),
    ),
  );
}

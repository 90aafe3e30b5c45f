/**
 * BEGIN .. COMMIT in as few round trips as the statements allow: one flight opens the transaction
 * and runs what needs no answer, a second one carries the writes together with COMMIT.
 *
 * Nothing is reported as committed before COMMIT itself came back with the tag `COMMIT`:
 * the COMMIT of an aborted transaction answers `ROLLBACK`, without an error.
 */
import { sql } from "drizzle-orm";
import type { Connection, Result, Row, Statement, Tx, Write } from "./connect.ts";

export interface Timeouts {
  readonly lockTimeoutMs: number;
  readonly statementTimeoutMs: number;
  /** Where given, no statement behind the opening flight may take longer than what is left. */
  readonly remainingMs?: () => number;
}

/** The transaction could not be committed, though no statement of ours failed. */
export class TransactionAborted extends Error {
  override readonly name = "TransactionAborted";
}

/** A statement of the opening flight failed: nobody has decided anything yet. */
export class OpeningFailed extends Error {
  override readonly name = "OpeningFailed";
}

/**
 * Longer than any Worker works on a delivery: it frees the locks of one that vanished without
 * closing its socket.
 */
const IDLE_IN_TRANSACTION_TIMEOUT_MS = 15_000;

/** How a transaction ends: with these writes and COMMIT, or with ROLLBACK (not waited for). */
export type Ending<R> =
  | { readonly commit: readonly Write[]; readonly value: R }
  | { readonly rollback: true; readonly value: R };

/**
 * True only in a transaction that `begin` opened. Statements of an opening flight are on their way
 * before BEGIN has answered; should BEGIN fail, each would commit by itself. One that must not asks
 * this in its WHERE.
 */
export const insideTransaction = sql`current_setting('stripe_inbox.transaction', true) = 'open'`;

/**
 * Two round trips: the opening statements, then what `decide` makes of their rows.
 * A failure is thrown after ROLLBACK was sent; the connection can be used again.
 */
export async function inTransaction<R>(
  db: Connection,
  timeouts: Timeouts,
  opening: readonly Write[],
  decide: (rows: readonly (readonly Row[])[], tx: Tx) => Promise<Ending<R>>,
): Promise<R> {
  try {
    const opened = await allOf(db.send([begin(timeouts), ...opening.map(db.compile)])).catch(
      (cause: unknown) => {
        throw new OpeningFailed("The opening flight failed.", { cause });
      },
    );
    const ending = await withTx(db, timeouts, (tx) =>
      decide(
        opened.slice(1).map(({ rows }) => rows),
        tx,
      ),
    );
    if ("rollback" in ending) {
      rollback(db);
      return ending.value;
    }
    if (!db.inTransaction()) {
      throw new TransactionAborted("The transaction was aborted before its COMMIT.");
    }
    const writes = ending.commit.map(db.compile);
    assertCommitted(await allOf(db.send([...shorterTimeout(timeouts), ...writes, COMMIT])));
    return ending.value;
  } catch (error) {
    rollback(db);
    throw error;
  }
}

async function withTx<R>(
  db: Connection,
  timeouts: Timeouts,
  use: (tx: Tx) => Promise<R>,
): Promise<R> {
  const { tx, end } = db.openTx(() => sendAndForget(db, shorterTimeout(timeouts)));
  try {
    return await use(tx);
  } finally {
    end();
  }
}

/** One round trip, for a transaction whose statements need no answer of one another. */
export async function inOneFlight(
  db: Connection,
  timeouts: Timeouts,
  writes: readonly Write[],
): Promise<readonly (readonly Row[])[]> {
  const statements = [begin(timeouts), ...writes.map(db.compile), COMMIT];
  try {
    const results = await allOf(db.send(statements));
    assertCommitted(results);
    return results.slice(1, -1).map(({ rows }) => rows);
  } catch (error) {
    rollback(db);
    throw error;
  }
}

const COMMIT: Statement = { text: "commit" };
const ROLLBACK: Statement = { text: "rollback" };

/** One message, so that BEGIN and its settings fail together. Numbers come validated. */
function begin({ lockTimeoutMs, statementTimeoutMs }: Timeouts): Statement {
  const settings = {
    lock_timeout: lockTimeoutMs,
    statement_timeout: statementTimeoutMs,
    idle_in_transaction_session_timeout: IDLE_IN_TRANSACTION_TIMEOUT_MS,
    "stripe_inbox.transaction": "open",
  };
  const local = Object.entries(settings).map(([name, value]) => `set local ${name} = '${value}'`);
  return { text: ["begin isolation level read committed", ...local].join("; ") };
}

/** What a transaction needs to hear when less is left than a statement may take. */
function shorterTimeout({ statementTimeoutMs, remainingMs }: Timeouts): Statement[] {
  const leftMs = remainingMs?.() ?? statementTimeoutMs;
  if (leftMs >= statementTimeoutMs) return [];
  return [{ text: `set local statement_timeout = '${Math.max(1, Math.floor(leftMs))}'` }];
}

function rollback(db: Connection): void {
  sendAndForget(db, [ROLLBACK]);
}

/** Whatever comes next on this connection comes after it. */
function sendAndForget(db: Connection, statements: readonly Statement[]): void {
  for (const result of db.send(statements)) result.catch(() => undefined);
}

/** The first failure is the cause; those behind it only say that the transaction is aborted. */
async function allOf(results: readonly Promise<Result>[]): Promise<readonly Result[]> {
  const settled = await Promise.allSettled(results);
  return settled.map((result) => {
    if (result.status === "rejected") throw result.reason;
    return result.value;
  });
}

function assertCommitted(results: readonly Result[]): void {
  const tag = results.at(-1)?.command;
  if (tag !== "COMMIT") throw new TransactionAborted(`COMMIT was answered with ${tag}.`);
}

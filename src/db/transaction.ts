/**
 * BEGIN .. COMMIT in as few round trips as the statements allow: one flight opens the transaction
 * and runs what needs no answer, a second one carries the writes together with COMMIT.
 *
 * Nothing is reported as committed before COMMIT itself came back with the tag `COMMIT`:
 * the COMMIT of an aborted transaction answers `ROLLBACK`, without an error.
 */
import { sql } from "drizzle-orm";
import type { Connection, Result, Row, Statement, Tx, Write } from "./connect.ts";
import { DatabaseUnavailable } from "./unavailable.ts";
import { isNameTrouble } from "./postgres-errors.ts";

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

/** How a transaction ends: with these writes and COMMIT, or with ROLLBACK (waited for if asked). */
export type Ending<R> =
  | { readonly commit: readonly Write[]; readonly value: R }
  | { readonly rollback: true | "awaited"; readonly value: R };

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
  decide: (rows: Opened, tx: Tx) => Promise<Ending<R>>,
): Promise<R> {
  try {
    const rows = await open(db.send(beginWith(db, timeouts, opening)));
    const ending = await withTx(db, timeouts, (tx) => decide(rows, tx));
    if ("rollback" in ending) {
      if (ending.rollback === "awaited") await allOf(db.send([ROLLBACK]));
      else rollback(db);
      return ending.value;
    }
    assertCommitted(await allOf(db.send(commitWith(db, timeouts, ending.commit))));
    return ending.value;
  } catch (error) {
    rollback(db);
    throw orLost(db, error);
  }
}

/** What each opening statement returned. */
export type Opened = readonly (readonly Row[])[];

/** How a transaction failed, and at which of its writes; past them: at COMMIT. */
export interface Failed {
  readonly at: number;
  readonly error: unknown;
}

/**
 * Transactions that need no answer of one another, each with its BEGIN and COMMIT, in one round trip.
 * One that fails is rolled back by its COMMIT, and the next one begins.
 *
 * Should a BEGIN fail, the writes behind it are a transaction all the same, since they share a Sync:
 * the first of each must be one that fails outside of `insideTransaction`.
 *
 * @returns for each how it failed; undefined: it was committed. All promises settle.
 */
export async function eachInOneFlight(
  db: Connection,
  timeouts: Timeouts,
  transactions: readonly (readonly Write[])[],
): Promise<readonly (Failed | undefined)[]> {
  if (!db.pipelines) throw new Error("Bug! Without pipelining they share no Sync.");
  const prepared = transactions.map((writes) => statementsOf(db, timeouts, writes));
  const results = [...db.send(prepared.flatMap((one) => ("error" in one ? [] : one)))];
  const ends = prepared.map((one) =>
    "error" in one ? Promise.resolve(one) : failureOf(results.splice(0, one.length)),
  );
  return Promise.all(ends);
}

/** One that cannot be sent fails before any of it is. */
function statementsOf(
  db: Connection,
  timeouts: Timeouts,
  writes: readonly Write[],
): readonly Statement[] | Failed {
  try {
    return [begin(timeouts), ...writes.map(db.compile), COMMIT];
  } catch (error) {
    return { at: writes.length, error };
  }
}

async function failureOf(results: readonly Promise<Result>[]): Promise<Failed | undefined> {
  const settled = await Promise.allSettled(results);
  for (const [index, result] of settled.entries()) {
    if (result.status === "rejected") return { at: index - 1, error: result.reason };
  }
  try {
    assertCommitted(
      settled.flatMap((result) => (result.status === "fulfilled" ? result.value : [])),
    );
    return undefined;
  } catch (error) {
    return { at: results.length - 2, error };
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

/**
 * One round trip, for a transaction whose statements need no answer of one another; a second one
 * where a pooler turns out to keep no account of names.
 */
export async function inOneFlight(
  db: Connection,
  timeouts: Timeouts,
  writes: readonly Write[],
): Promise<readonly (readonly Row[])[]> {
  const statements = [begin(timeouts), ...writes.map(db.compile), COMMIT];
  const once = async (): Promise<readonly (readonly Row[])[]> => {
    try {
      const results = await allOf(db.send(statements));
      assertCommitted(results);
      return results.slice(1, -1).map(({ rows }) => rows);
    } catch (error) {
      rollback(db);
      throw orLost(db, error);
    }
  };
  return once().catch((error: unknown) => {
    if (isNameTrouble(error)) return once();
    throw error;
  });
}

function beginWith(db: Connection, timeouts: Timeouts, opening: readonly Write[]): Statement[] {
  return [begin(timeouts), ...opening.map(db.compile)];
}

/** What the opening statements return. Whoever waits for it later must not find it unheard of. */
function open(results: readonly Promise<Result>[]): Promise<Opened> {
  const opened = allOf(results).then(
    (all) => all.slice(1).map(({ rows }) => rows),
    (cause: unknown) => {
      throw new OpeningFailed("The opening flight failed.", { cause });
    },
  );
  opened.catch(() => undefined);
  return opened;
}

/** @throws TransactionAborted; and when a write cannot be sent, before anything is. */
function commitWith(db: Connection, timeouts: Timeouts, writes: readonly Write[]): Statement[] {
  if (!db.inTransaction()) {
    throw new TransactionAborted("The transaction was aborted before its COMMIT.");
  }
  return [...shorterTimeout(timeouts), ...writes.map(db.compile), COMMIT];
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

/** Whatever a driver says of a socket that is gone. */
function orLost(db: Connection, error: unknown): unknown {
  if (!db.isLost() || error instanceof DatabaseUnavailable) return error;
  return new DatabaseUnavailable("the connection was lost", { cause: error });
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

/**
 * One piece of work on one connection, within a deadline that also covers what no setting of
 * Postgres does: connecting, a silent socket, a slow COMMIT.
 */
import { type Connection, connect, type Database } from "./connect.ts";
import { DatabaseUnavailable } from "./unavailable.ts";

export interface WorkTime {
  /** From now on, connecting included. */
  readonly deadlineMs: number;
  /** Takes what may go on behind the answer, such as `ctx.waitUntil`. */
  readonly afterwards: (rest: Promise<unknown>) => void;
}

export interface Work {
  readonly db: Connection;
  /** How much of the deadline is left. */
  readonly remainingMs: () => number;
  /** Keeps the connection for one thing more, behind the answer; cut after BEHIND_MS. */
  readonly behind: (more: () => Promise<unknown>) => void;
}

/** How long may be worked behind an answer. Workers end what runs 30 s after it. */
export const BEHIND_MS = 10_000;

/**
 * @throws DatabaseUnavailable when it cannot be reached, or when the deadline passed: then the
 * connection is cut, and the work may or may not have been committed.
 */
export async function withConnection<T>(
  database: Database,
  { deadlineMs, afterwards }: WorkTime,
  work: (work: Work) => Promise<T>,
): Promise<T> {
  const endsAt = Date.now() + deadlineMs;
  const deadline = new AbortController();
  const expired = Promise.withResolvers<never>();
  const timer = setTimeout(() => {
    deadline.abort();
    expired.reject(new DatabaseUnavailable(`no answer within ${deadlineMs} ms`));
  }, deadlineMs);

  let more: (() => Promise<unknown>) | undefined;
  const behind = (next: () => Promise<unknown>): void => {
    more = next;
  };
  const connecting = connect(database, deadline.signal);
  const working = connecting.then((db) =>
    work({ db, remainingMs: () => endsAt - Date.now(), behind }),
  );
  // After the deadline nobody else listens.
  working.catch(() => undefined);
  try {
    return await Promise.race([working, expired.promise]);
  } finally {
    clearTimeout(timer);
    const cut = setTimeout(() => deadline.abort(), BEHIND_MS);
    const finish = async (): Promise<void> => {
      const db = await connecting;
      await more?.().catch(() => undefined);
      clearTimeout(cut);
      await db.close();
    };
    afterwards(finish().catch(() => clearTimeout(cut)));
  }
}

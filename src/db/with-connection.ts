/**
 * One piece of work on one connection, within a deadline that also covers what no setting of
 * Postgres does: connecting, a silent socket, a slow COMMIT.
 */
import { type Connection, connect, type Database, DatabaseUnavailable } from "./connect.ts";

export interface WorkTime {
  /** From now on, connecting included. */
  readonly deadlineMs: number;
  /** Takes what may go on behind the answer, such as `ctx.waitUntil`. */
  readonly afterwards: (rest: Promise<unknown>) => void;
}

/**
 * @throws DatabaseUnavailable when it cannot be reached, or when the deadline passed: then the
 * connection is cut, and the work may or may not have been committed.
 */
export async function withConnection<T>(
  database: Database,
  { deadlineMs, afterwards }: WorkTime,
  work: (db: Connection, remainingMs: () => number) => Promise<T>,
): Promise<T> {
  const endsAt = Date.now() + deadlineMs;
  const deadline = new AbortController();
  const expired = Promise.withResolvers<never>();
  const timer = setTimeout(() => {
    deadline.abort();
    expired.reject(new DatabaseUnavailable(`no answer within ${deadlineMs} ms`));
  }, deadlineMs);

  const connecting = connect(database, deadline.signal);
  const working = connecting.then((db) => work(db, () => endsAt - Date.now()));
  // After the deadline nobody else listens.
  working.catch(() => undefined);
  try {
    return await Promise.race([working, expired.promise]);
  } finally {
    clearTimeout(timer);
    afterwards(connecting.then((db) => db.close()).catch(() => undefined));
  }
}

/**
 * One piece of work on one connection, within a deadline that also covers what no setting of
 * Postgres does: connecting, a silent socket, a slow COMMIT.
 */
import { type Connection, connect, DatabaseUnavailable } from "./connect.ts";

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
  database: { readonly connectionString: string; readonly pipeline: boolean },
  { deadlineMs, afterwards }: WorkTime,
  work: (db: Connection, remainingMs: () => number) => Promise<T>,
): Promise<T> {
  const endsAt = Date.now() + deadlineMs;
  const deadline = AbortSignal.timeout(deadlineMs);
  const expired = new Promise<never>((_, reject) => {
    deadline.addEventListener("abort", () =>
      reject(new DatabaseUnavailable(`no answer within ${deadlineMs} ms`)),
    );
  });

  const connecting = connect(database, deadline);
  const working = connecting.then((db) => work(db, () => endsAt - Date.now()));
  try {
    return await Promise.race([working, expired]);
  } finally {
    const closing = connecting.then((db) => db.close());
    afterwards(closing.catch(() => undefined));
    // After the deadline nobody else listens.
    working.catch(() => undefined);
  }
}

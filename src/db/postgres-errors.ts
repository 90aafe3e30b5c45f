/** What Postgres says when it refuses, whichever driver passes it on, and whatever wraps it. */

/** https://www.postgresql.org/docs/current/protocol-error-fields.html */
interface PostgresError extends Error {
  readonly code?: string;
  /** Of Postgres' source, that reported it. */
  readonly routine?: string;
}

/** The SQLSTATE behind an error; null when Postgres did not speak. */
export function sqlStateOf(error: unknown): string | null {
  return postgresErrorOf(error)?.code ?? null;
}

/** What it says in words, names and all: to be looked at, and never repeated. */
export function wordsOf(error: unknown): string {
  return postgresErrorOf(error)?.message ?? "";
}

/**
 * Whether a statement failed by its name alone: the server does not know it, knows it already, or
 * prepared it before a column's type changed. Nothing of it was done, and without a name it will be.
 * https://www.postgresql.org/docs/current/errcodes-appendix.html
 */
export function isNameTrouble(error: unknown): boolean {
  const { code, routine } = postgresErrorOf(error) ?? {};
  const isOutdated = code === "0A000" && routine === "RevalidateCachedQuery";
  return isOutdated || code === "26000" || code === "42P05";
}

function postgresErrorOf(error: unknown): PostgresError | null {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    if (isOfPostgres(cause)) return cause;
  }
  return null;
}

/** Each driver has a class of its own for them. */
function isOfPostgres(error: Error): error is PostgresError {
  return error.name === "error" && "severity" in error;
}

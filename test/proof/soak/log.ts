/**
 * The errors that the Worker logs while it is disturbed: each must be one that the disturbances, or
 * the events that are made to fail, explain.
 */
import type { Failure } from "../workers/receiver.ts";

/** How an event is made to fail, by its id. */
export type Planned = ReadonlyMap<string, Failure["how"]>;

/** What is made to fail says so, by the class of its error or its SQLSTATE. */
const SAYS: Readonly<Record<Failure["how"], string>> = {
  throw: "TypeError",
  parameter: "TypeError",
  statement: "22012",
  write: "22012",
  permanent: "PermanentError:proof",
};

/** A session was ended, Postgres starts or stops, a pooler lost its server, a message came too late. */
const OUTAGE = /^(08|57)/;
/** Two were at the same row. */
const CONTENTION = /^(40|55P03)/;
/** The driver's own classes: a connection ended while a tick was waiting on it. */
const LOST = /^error$/i;

/** What a line says that nothing explains; null when there is nothing of the kind. */
export function unexplained(line: string, planned: Planned): string | null {
  const { message, error, sqlstate, event } = fieldsOf(line);
  const how = event === undefined ? undefined : planned.get(event);
  const known =
    error === undefined ||
    error === "DatabaseUnavailable" ||
    // A stall took the time that was the handler's.
    error === "NoTimeLeft" ||
    (LOST.test(error) && message !== "delivery") ||
    (how !== undefined && error === SAYS[how]) ||
    OUTAGE.test(error) ||
    CONTENTION.test(error);
  const outage =
    sqlstate === undefined ||
    OUTAGE.test(sqlstate) ||
    CONTENTION.test(sqlstate) ||
    // The connection was lost behind a statement that was to fail.
    (how !== undefined && sqlstate === SAYS[how]);
  return known && outage ? null : `${message}: ${[error, sqlstate].filter(Boolean).join(" ")}`;
}

function fieldsOf(line: string): Readonly<Record<string, string | undefined>> {
  try {
    const fields: unknown = JSON.parse(line);
    if (typeof fields === "object" && fields !== null) {
      return Object.fromEntries(Object.entries(fields).map(([key, value]) => [key, String(value)]));
    }
  } catch {
    // Not a line of the Worker's own.
  }
  return { message: "log", error: line };
}

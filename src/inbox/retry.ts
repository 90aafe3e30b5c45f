/**
 * Pure: what kind of failure an error is, and what becomes of an event that failed with it.
 */
import { DatabaseUnavailable } from "../db/unavailable.ts";
import { isNameTrouble, sqlStateOf } from "../db/postgres-errors.ts";
import { OpeningFailed } from "../db/transaction.ts";
import { errorClass } from "../log.ts";
import { CallFailed } from "../stripe/call-failed.ts";
import { NoTimeLeft } from "./handler.ts";

/**
 * Thrown by a handler: trying again can never help, a person must look.
 * The reason is a code such as `amount_paid_unusable`; anything else is not stored.
 */
export class PermanentError extends Error {
  override readonly name = "PermanentError";
  readonly reason: string;

  constructor(reason: string) {
    super(reason);
    this.reason = /^[a-z][a-z0-9_]{0,62}$/.test(reason) ? reason : "unnamed";
  }
}

/**
 * - `permanent`: never again.
 * - `ours`: the handler's or the statement's fault; tried again, then parked.
 * - `contention`: somebody else held what we need; tried again at once, never parked.
 * - `infrastructure`: the database's trouble, or Stripe's; tried again, never parked.
 */
export type FailureKind = "permanent" | "ours" | "contention" | "infrastructure";

export interface Failure {
  readonly kind: FailureKind;
  /** An error's class or SQLSTATE: all that is logged or stored of it. */
  readonly code: string;
}

/** https://www.postgresql.org/docs/current/errcodes-appendix.html */
const CONTENTION = /^40|^55P03$/;
/** A lock was waited for in vain. */
export const LOCK_TIMED_OUT = "55P03";
/** A statement took too long. */
export const TIMED_OUT = "57014";
const INFRASTRUCTURE = /^(?:08|53|57(?!014)|58|25006)/;

export function classify(error: unknown): Failure {
  if (error instanceof PermanentError) {
    return { kind: "permanent", code: `PermanentError:${error.reason}` };
  }
  if (error instanceof DatabaseUnavailable || error instanceof NoTimeLeft) {
    return { kind: "infrastructure", code: error.name };
  }
  if (error instanceof CallFailed) {
    return { kind: error.kind === "refused" ? "ours" : "infrastructure", code: error.code };
  }
  const state = sqlStateOf(error);
  if (state === null) return { kind: "ours", code: errorClass(error) };
  // Before any work was done, what took long was the wait for others' locks, one after the other.
  const waited = error instanceof OpeningFailed && state === TIMED_OUT;
  if (waited || CONTENTION.test(state) || isNameTrouble(error)) {
    return { kind: "contention", code: state };
  }
  return { kind: INFRASTRUCTURE.test(state) ? "infrastructure" : "ours", code: state };
}

/** At which attempt such a failure parks the event; null: at none. */
export function parksAtAttempt(kind: FailureKind, maxAttempts: number): number | null {
  switch (kind) {
    case "permanent":
      return 1;
    case "ours":
      return maxAttempts;
    case "contention":
    case "infrastructure":
      return null;
  }
}

/** The closed set of a delivery's outcomes, the one table of their statuses, and the answer itself. */
import type { Context } from "hono";
import type { Env } from "../config.ts";
import type { Received } from "../inbox/receive.ts";
import type { Fields } from "../log.ts";
import type { Identity } from "./ops-access.ts";

export type Outcome = Received["outcome"] | "invalid" | "too_large" | "too_slow" | "unavailable";

/**
 * Stripe takes any 2xx as "done" and sends everything else again, for up to three days
 * (https://docs.stripe.com/webhooks#retries): a fault of ours is never a 4xx or a 2xx.
 */
const STATUS = {
  processed: 200,
  stored: 200,
  duplicate: 200,
  ignored: 200,
  needs_review: 200,
  invalid: 400,
  too_slow: 408,
  too_large: 413,
  failed: 500,
  unavailable: 503,
} as const satisfies Record<Outcome, number>;

export interface DoorEnv {
  readonly Bindings: Env;
  readonly Variables: {
    /** What the request's one log line says; completed while the request makes its way. */
    line: Fields;
    /** Who is at work, behind the door for operators. */
    identity: Identity;
  };
}

/** `{ "outcome": …, "event": … }`; `event` only once it is verified. */
export function answer(c: Context<DoorEnv>, outcome: Outcome): Response {
  note(c, { outcome });
  return c.json({ outcome, event: c.get("line")["event"] }, STATUS[outcome]);
}

/** Adds to the request's log line. */
export function note(c: Context<DoorEnv>, fields: Fields): void {
  c.set("line", { ...c.get("line"), ...fields });
}

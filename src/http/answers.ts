/** The closed set of a delivery's outcomes, and the one table of their statuses. */
import type { Received } from "../inbox/receive.ts";

export type Outcome = Received["outcome"] | "invalid" | "too_large" | "unavailable";

/**
 * Stripe takes any 2xx as "done" and sends everything else again, for up to three days
 * (https://docs.stripe.com/webhooks#retries): a fault of ours is never a 4xx or a 2xx.
 */
export const STATUS = {
  processed: 200,
  duplicate: 200,
  ignored: 200,
  needs_review: 200,
  invalid: 400,
  too_large: 413,
  failed: 500,
  unavailable: 503,
} as const satisfies Record<Outcome, number>;

/**
 * The outgoing side of Stripe. Handlers cannot reach it: nothing outside the database is called in
 * a transaction; consequences leave by the outbox.
 */

/**
 * The idempotency key of a call that follows from an event: the same event and action give the same
 * key, so that Stripe answers a repeated call with the first one's result.
 * https://docs.stripe.com/api/idempotent_requests (keys of up to 255 characters, kept for a day)
 *
 * @param action a word such as `update-customer-metadata`.
 */
export function idempotencyKey(eventId: string, action: string): string {
  const key = `webhook:${eventId}:${action}`;
  if (!/^[a-z][a-z0-9-]*$/.test(action) || key.length > 255) {
    throw new RangeError(`Bug! "${action}" makes no idempotency key.`);
  }
  return key;
}

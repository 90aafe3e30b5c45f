/** What Stripe's API said, received as a delivery of it would be: by the same road, once. */
import type { Connection } from "../db/connect.ts";
import { receiveSync, type Received, type ReceivePolicy } from "../inbox/receive.ts";
import { concerns, type EndpointRules } from "../inbox/rules.ts";
import { eventFromApi } from "../stripe/verify.ts";

/**
 * @param json an event of our own account, from Stripe's API or told from what that answered.
 * @returns null when no endpoint would have anything to do with it, or it cannot be received.
 */
export async function reprocess(
  db: Connection,
  json: string,
  endpoints: readonly EndpointRules[],
  policy: ReceivePolicy,
): Promise<Received | null> {
  const event = eventFromApi(json);
  if ("invalid" in event) return null;
  const endpoint = endpoints.find((one) => concerns(one, event));
  return endpoint ? receiveSync(db, { endpoint, event }, policy) : null;
}

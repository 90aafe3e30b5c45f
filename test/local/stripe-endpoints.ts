/** Webhook endpoints as Stripe lists them. https://docs.stripe.com/api/webhook_endpoints/object */
import { DEFAULT_ENDPOINT, endpoints } from "../../src/endpoints.ts";
import { API_VERSION } from "../../src/stripe/webhook-endpoints.ts";
import type { JsonObject } from "./invoice-shapes.ts";

let made = 0;

/** One that delivers to `url` what the handlers of our own account want, unless `fields` say otherwise. */
export function webhookEndpoint(url: string, fields: JsonObject = {}): JsonObject {
  return {
    id: `we_made${++made}`,
    object: "webhook_endpoint",
    api_version: API_VERSION,
    application: null,
    created: 1_790_000_000,
    description: null,
    enabled_events: Object.keys(endpoints[DEFAULT_ENDPOINT]?.handlers ?? {}),
    livemode: false,
    metadata: {},
    status: "enabled",
    url,
    ...fields,
  };
}

/** Where the Worker of that address takes deliveries from our own account. */
export const billingUrl = (workerUrl: string): string => `${workerUrl}/webhooks/stripe/billing`;

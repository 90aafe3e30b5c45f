/** The endpoints to which Stripe delivers, as Stripe sees them. */
import { Stripe } from "stripe";
import * as v from "valibot";
import type { StripeApi } from "../config.ts";
import { callStripe, createStripe } from "./api.ts";
import { CallFailed } from "./call-failed.ts";

export interface WebhookEndpoint {
  readonly url: string;
  readonly status: string;
  readonly livemode: boolean;
  /** Null: the account's own. */
  readonly apiVersion: string | null;
  /** Types, or `*`. */
  readonly enabledEvents: readonly string[];
}

/** In whose terms the handlers' types are written. */
export const API_VERSION: string = Stripe.API_VERSION;

/** An account has 16 at most in each mode: https://docs.stripe.com/webhooks#register-webhook */
const LARGEST_PAGE = 100;

const Listed = v.object({
  data: v.array(
    v.object({
      url: v.string(),
      status: v.string(),
      livemode: v.boolean(),
      api_version: v.nullable(v.string()),
      enabled_events: v.array(v.string()),
    }),
  ),
});

/** @throws CallFailed */
export async function listWebhookEndpoints(api: StripeApi): Promise<readonly WebhookEndpoint[]> {
  const stripe = createStripe(api);
  const answer = await callStripe(() => stripe.webhookEndpoints.list({ limit: LARGEST_PAGE }));
  const listed = v.safeParse(Listed, answer);
  if (!listed.success) throw new CallFailed("uncertain", "UnreadablePage");
  return listed.output.data.map(({ api_version, enabled_events, ...endpoint }) => ({
    ...endpoint,
    apiVersion: api_version,
    enabledEvents: enabled_events,
  }));
}

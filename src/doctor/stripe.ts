/** Stripe's own view of our endpoints. */
import { type Env, InvalidSetting, readAccount, readStripeApi, type StripeApi } from "../config.ts";
import { DEFAULT_ENDPOINT, type Endpoint, type Endpoints } from "../endpoints.ts";
import { errorClass } from "../log.ts";
import { CallFailed } from "../stripe/call-failed.ts";
import {
  API_VERSION,
  listWebhookEndpoints,
  type WebhookEndpoint,
} from "../stripe/webhook-endpoints.ts";
import { fail, type Finding, ok, skipped, warn } from "./finding.ts";

const PREFIX = "/webhooks/stripe";

/** @param here where this deployment answers. */
export async function examineStripe(
  endpoints: Endpoints,
  env: Env,
  here: URL,
): Promise<readonly Finding[]> {
  const check = "Stripe's endpoints";
  let api: StripeApi;
  try {
    api = readStripeApi(env);
  } catch (error) {
    if (!(error instanceof InvalidSetting)) throw error;
    const missing = error.setting === "STRIPE_API_KEY";
    return [skipped(check, missing ? "there is no STRIPE_API_KEY to ask with" : error.message)];
  }
  try {
    const { livemode } = readAccount(env);
    const listed = await listWebhookEndpoints(api);
    return Object.entries(endpoints).flatMap(([name, endpoint]) => [
      // Whoever has nothing to do there need not have told Stripe of it.
      ...(Object.keys(endpoint.handlers).length > 0
        ? examineOne(name, endpoint, listed, here, livemode)
        : []),
      ...unseen(name, endpoint),
    ]);
  } catch (error) {
    if (error instanceof InvalidSetting) {
      return [skipped(check, `${error.setting} is unusable: see settings`)];
    }
    if (!(error instanceof CallFailed)) return [fail(check, errorClass(error), "Look at the log")];
    if (error.code === "Stripe:403") {
      return [skipped(check, "STRIPE_API_KEY may not read webhook endpoints")];
    }
    return [
      fail(
        check,
        `Stripe could not be asked: ${error.code}`,
        error.code === "Stripe:401" ? "npx wrangler secret put STRIPE_API_KEY" : "Look again later",
      ),
    ];
  }
}

/** Stripe lists the destinations of thin events elsewhere. */
function unseen(name: string, { thinHandlers = {} }: Endpoint): readonly Finding[] {
  const named = Object.keys(thinHandlers);
  if (named.length === 0) return [];
  const look = `not looked at: in Stripe, is there an event destination that sends ${named.join(", ")}?`;
  return [skipped(`Stripe's thin events of ${name}`, look)];
}

function examineOne(
  name: string,
  endpoint: Endpoint,
  listed: readonly WebhookEndpoint[],
  here: URL,
  livemode: boolean | null,
): readonly Finding[] {
  const check = (what: string): string => `Stripe's ${what} of ${name}`;
  const paths = name === DEFAULT_ENDPOINT ? [PREFIX, `${PREFIX}/${name}`] : [`${PREFIX}/${name}`];
  const ours = listed.filter(({ url }) => {
    const path = URL.parse(url)?.pathname.replace(/\/$/, "");
    return path !== undefined && paths.includes(path);
  });
  const at = ours.filter(({ url }) => URL.parse(url)?.host === here.host);
  const there = at.length > 0 ? at : ours;
  // While its API version is changed it is there twice. Of those, one that is off does no harm
  // beside one that is on; where both are on, both are looked at.
  const enabled = there.filter(({ status }) => status === "enabled");
  const found = enabled.length > 0 ? enabled : there;
  if (found.length === 0) {
    return [
      fail(
        check("URL"),
        `of Stripe's endpoints in the key's mode (${listed.length}), none leads to ${PREFIX}/${name}`,
        `Add ${here.origin}${PREFIX}/${name} in Stripe, or give the key of the other mode`,
      ),
    ];
  }
  return found.flatMap((one) => [
    at.length > 0
      ? ok(check("URL"), one.url)
      : warn(
          check("URL"),
          `${one.url}, and this is ${here.host}`,
          "If both lead here, all is well; else correct the URL in Stripe",
        ),
    one.status === "enabled"
      ? ok(check("status"), one.status)
      : fail(check("status"), one.status, "Enable it in Stripe, then resend what failed meanwhile"),
    mode(check("livemode"), one, endpoint.livemode ?? livemode),
    version(check("api version"), one),
    types(check("event types"), one, endpoint),
  ]);
}

function mode(check: string, { livemode }: WebhookEndpoint, accepts: boolean | null): Finding {
  const found = livemode ? "live mode" : "test mode";
  return accepts === null || accepts === livemode
    ? ok(check, found)
    : fail(check, found, "STRIPE_LIVEMODE says otherwise: everything it delivers is ignored");
}

function version(check: string, { apiVersion }: WebhookEndpoint): Finding {
  if (apiVersion === null) {
    return warn(
      check,
      `the account's own, and handlers are written for ${API_VERSION}`,
      `Make the endpoint anew with the version ${API_VERSION}`,
    );
  }
  return apiVersion === API_VERSION
    ? ok(check, apiVersion)
    : warn(
        check,
        `${apiVersion}, and handlers are written for ${API_VERSION}`,
        "Events look as they did then: see that each handler can read them, or make the endpoint anew",
      );
}

function types(check: string, { enabledEvents }: WebhookEndpoint, endpoint: Endpoint): Finding {
  const handled = Object.keys(endpoint.handlers);
  if (enabledEvents.includes("*")) return ok(check, "all, of which most are ignored");
  const missing = handled.filter((type) => !enabledEvents.includes(type));
  return missing.length === 0
    ? ok(check, `all ${handled.length} that have a handler`)
    : fail(check, `not delivered: ${missing.join(", ")}`, "Add them to the endpoint in Stripe");
}

/**
 * What a thin (v2) notification names, asked of Stripe's API: never in a transaction, since it may take
 * seconds. https://docs.stripe.com/webhooks?snapshot-or-thin=thin
 */
import * as v from "valibot";
import type { StripeApi } from "../config.ts";
import { callStripe, createStripe } from "./api.ts";
import { CallFailed } from "./call-failed.ts";
import type { VerifiedEvent } from "./verify.ts";

/** `related_object`: the object as it is now; `event`: the event with its `data`, as it was then. */
export type Wanted = "related_object" | "event";

/**
 * @returns null when Stripe knows it no more, or the notification names none.
 * @throws CallFailed
 */
export type FetchThin = (
  wanted: Wanted,
  event: VerifiedEvent,
  withinMs: number,
) => Promise<object | null>;

/** Longer than Stripe takes. */
const LONGEST_FETCH_MS = 10_000;
const GONE = "Stripe:404";
/** Whatever is asked for. */
const OUT_OF_REACH = /^Stripe(?:ConnectionError|:429|:5\d\d)$/;

const Named = v.object({
  context: v.nullish(v.string()),
  related_object: v.nullish(v.object({ id: v.string(), url: v.string() })),
});
const Found = v.looseObject({ id: v.string() });

/**
 * Once Stripe turns out to be out of reach it is not asked again: each would wait as long, and everything
 * else behind it. So it is good for one piece of work.
 *
 * @param readApi called when it is asked for the first time.
 */
export function thinFetcher(readApi: () => StripeApi): FetchThin {
  let unreachable: CallFailed | null = null;
  return async (wanted, event, withinMs) => {
    if (unreachable) throw unreachable;
    try {
      return await fetchThin(apiOf(readApi), wanted, event, withinMs);
    } catch (error) {
      if (!(error instanceof CallFailed)) throw error;
      if (error.code === GONE) return null;
      if (OUT_OF_REACH.test(error.code)) unreachable = error;
      throw error;
    }
  };
}

async function fetchThin(
  api: StripeApi,
  wanted: Wanted,
  event: VerifiedEvent,
  withinMs: number,
): Promise<object | null> {
  const named = v.safeParse(Named, event.payload);
  if (!named.success) throw new CallFailed("refused", "UnusableNotification");
  const { context, related_object: related } = named.output;
  const id = wanted === "event" ? event.id : related?.id;
  const path =
    wanted === "event" ? `/v2/core/events/${encodeURIComponent(event.id)}` : related?.url;
  if (id === undefined || path === undefined) return null;
  // Signed or not, it leads nowhere but to the API.
  if (!/^\/v[12](?:\/[\w-]+)+(?:\?[\w=&.%-]*)?$/.test(path)) {
    throw new CallFailed("refused", "UnusableNotification");
  }
  assertSameMode(api, event);
  const found = await callStripe(() =>
    createStripe(api).rawRequest("GET", path, undefined, {
      timeout: Math.max(1, Math.min(withinMs, LONGEST_FETCH_MS)),
      ...(context ? { stripeContext: context } : {}),
    }),
  );
  if (!v.is(Found, found) || found.id !== id) throw new CallFailed("uncertain", "UnexpectedAnswer");
  return found;
}

function apiOf(read: () => StripeApi): StripeApi {
  try {
    return read();
  } catch {
    // It waits until there is one: the doctor and the log say which setting it is.
    throw new CallFailed("not now", "NoApiKey");
  }
}

/** To a key of Stripe's other mode, everything would be gone. */
function assertSameMode({ key }: StripeApi, { livemode }: VerifiedEvent): void {
  const mode = /_(live|test)_/.exec(key)?.[1];
  if (mode !== undefined && livemode !== null && livemode !== (mode === "live")) {
    throw new CallFailed("not now", "WrongMode");
  }
}

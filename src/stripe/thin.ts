/**
 * What a thin (v2) notification names, asked of Stripe's API: never in a transaction, since it may take
 * seconds. https://docs.stripe.com/webhooks?snapshot-or-thin=thin
 */
import * as v from "valibot";
import type { StripeApi } from "../config.ts";
import { apiOf, callStripe, createStripe } from "./api.ts";
import { CallFailed } from "./call-failed.ts";
import type { VerifiedEvent } from "./verify.ts";

/** `related_object`: the object as it is now; `event`: the event with its `data`, as it was then. */
export type Wanted = "related_object" | "event";

/**
 * @param withinMs asked when it is this one's turn.
 * @returns null when Stripe knows it no more, or the notification names none.
 * @throws CallFailed
 */
export type FetchThin = (
  wanted: Wanted,
  event: VerifiedEvent,
  withinMs: () => number,
) => Promise<object | null>;

/** Longer than Stripe takes. */
const LONGEST_FETCH_MS = 10_000;
const GONE = "Stripe:404";
/** Whatever is asked for; a 500 may be of one object alone. */
const OUT_OF_REACH = /^Stripe(?:ConnectionError|:401|:429|:50[234])$/;
/** One may be the fault of what was asked for. */
const FAILURES_UNTIL_GIVEN_UP = 2;

const Named = v.object({
  context: v.nullish(v.pipe(v.string(), v.regex(/^[\w/-]{1,255}$/))),
  // A singleton, such as a balance, has no id.
  related_object: v.nullish(
    v.object({ id: v.nullish(v.string()), type: v.string(), url: v.string() }),
  ),
});
const Found = v.looseObject({
  id: v.nullish(v.string()),
  object: v.nullish(v.string()),
  deleted: v.optional(v.unknown()),
});

/**
 * One at a time: a Worker has six connections, and a tick's lanes have most of them. Once Stripe turns
 * out to be out of reach it is not asked again: each would wait as long, and everything else behind it.
 * So it is good for one piece of work.
 *
 * @param readApi called when it is asked for the first time.
 */
export function thinFetcher(readApi: () => StripeApi): FetchThin {
  let unreachable: CallFailed | null = null;
  let failures = 0;
  let turn: Promise<unknown> = Promise.resolve();
  const fetchNow: FetchThin = async (wanted, event, withinMs) => {
    if (unreachable) throw unreachable;
    try {
      return await fetchThin(apiOf(readApi), wanted, event, withinMs);
    } catch (error) {
      const isOutOfReach = error instanceof CallFailed && OUT_OF_REACH.test(error.code);
      if (isOutOfReach && ++failures >= FAILURES_UNTIL_GIVEN_UP) unreachable = error;
      throw error;
    }
  };
  return (wanted, event, withinMs) => {
    const fetching = turn.then(() => fetchNow(wanted, event, withinMs));
    turn = fetching.catch(() => undefined);
    return fetching;
  };
}

async function fetchThin(
  api: StripeApi,
  wanted: Wanted,
  event: VerifiedEvent,
  withinMs: () => number,
): Promise<object | null> {
  const named = v.safeParse(Named, event.payload);
  if (!named.success) throw new CallFailed("refused", "UnusableNotification");
  const { context, related_object: related } = named.output;
  assertSameMode(api, event);
  const get = async (path: string): Promise<v.InferOutput<typeof Found> | null> => {
    const options = { ...(context ? { stripeContext: context } : {}), ...timeout(withinMs()) };
    const found = await callStripe(() =>
      createStripe(api).rawRequest("GET", path, undefined, options),
    ).catch(goneOrRefused);
    if (found !== null && !v.is(Found, found)) throw new CallFailed("refused", "UnexpectedAnswer");
    return found;
  };
  const getEvent = async (): Promise<object> => {
    const found = await get(`/v2/core/events/${encodeURIComponent(event.id)}`);
    // Stripe told of it: so this key is of another account, and to it everything would be gone.
    if (found === null) throw new CallFailed("refused", "UnknownEvent");
    if (found.id !== event.id) throw new CallFailed("refused", "UnexpectedAnswer");
    return found;
  };
  if (wanted === "event") return getEvent();
  if (!related) return null;
  const found = await get(pathOf(related.url));
  if (found === null) await getEvent();
  if (found === null || found.deleted === true) return null;
  const isNamed = related.id ? found.id === related.id : found.object === related.type;
  if (!isNamed) throw new CallFailed("refused", "UnexpectedAnswer");
  return found;
}

function timeout(withinMs: number): { readonly timeout: number } {
  return { timeout: Math.max(1, Math.min(withinMs, LONGEST_FETCH_MS)) };
}

/** What a key may not read, it may not read tomorrow either: to a person, who mends it and requeues. */
function goneOrRefused(error: unknown): null {
  if (!(error instanceof CallFailed)) throw error;
  if (error.code === GONE) return null;
  throw error.code === "Stripe:403" ? new CallFailed("refused", error.code) : error;
}

/** Signed or not, it leads nowhere but to the API, and is taken as it stands. */
function pathOf(url: string): string {
  const parsed = URL.parse(url, "https://api.stripe.com");
  const isAsItStands = parsed !== null && parsed.pathname + parsed.search === url;
  if (isAsItStands && /^\/v[12]\//.test(url)) return url;
  throw new CallFailed("refused", "UnusableNotification");
}

function assertSameMode({ key }: StripeApi, { livemode }: VerifiedEvent): void {
  const mode = /_(live|test)_/.exec(key)?.[1];
  if (mode !== undefined && livemode !== null && livemode !== (mode === "live")) {
    throw new CallFailed("no access", "WrongMode");
  }
}

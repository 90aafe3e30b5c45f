/**
 * The outgoing side of Stripe. Handlers cannot reach it: nothing outside the database is called in
 * a transaction; consequences leave by the outbox.
 */
import { createHash } from "node:crypto";
import { Stripe } from "stripe";
import { InvalidSetting, type StripeApi } from "../config.ts";
import { errorClass } from "../log.ts";
import { CallFailed } from "./call-failed.ts";

/** Longer than Stripe takes, shorter than any lease. */
const CALL_TIMEOUT_MS = 20_000;
/** https://docs.stripe.com/api/idempotent_requests */
const LONGEST_KEY = 255;
/** Whoever asks for more is asked again all the same. */
const LONGEST_RETRY_AFTER_SECONDS = 3_600;

/** Tries each call once: what follows from a failure is decided by whoever keeps the journal. */
export function createStripe({ key, url }: StripeApi, fetcher: typeof fetch = fetch): Stripe {
  return new Stripe(key, {
    httpClient: Stripe.createFetchHttpClient(fetcher),
    maxNetworkRetries: 0,
    timeout: CALL_TIMEOUT_MS,
    telemetry: false,
    ...(url === null
      ? {}
      : {
          host: url.hostname,
          protocol: url.protocol === "http:" ? "http" : "https",
          ...(url.port === "" ? {} : { port: url.port }),
        }),
  });
}

/**
 * Where there is no key, whatever asks or tells Stripe waits until there is one.
 *
 * @throws CallFailed
 */
export function apiOf(read: () => StripeApi): StripeApi {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof InvalidSetting)) throw error;
    const isMissing = error.setting === "STRIPE_API_KEY";
    throw new CallFailed("no access", isMissing ? "NoApiKey" : "InvalidSetting");
  }
}

/**
 * What a failed call means. Stripe answers a repeated key with what it answered first, also with a
 * 500; a 409 says that the same call is under way; a 401 or 403 speaks of our API key, and not of
 * the call, which succeeds once the key is put right.
 * https://docs.stripe.com/api/errors, https://docs.stripe.com/error-low-level
 *
 * @throws CallFailed
 */
export async function callStripe<T extends object>(
  call: () => Promise<Stripe.Response<T>>,
): Promise<T> {
  let answer: Stripe.Response<T>;
  try {
    answer = await call();
  } catch (error) {
    throw asCallFailed(error);
  }
  // The SDK takes whatever is JSON and names no error for an answer, a gateway's 503 too.
  const { statusCode: status } = answer.lastResponse;
  if (status >= 300) throw new CallFailed("uncertain", `Stripe:${status}`);
  return answer;
}

function asCallFailed(error: unknown): CallFailed {
  if (error instanceof CallFailed) return error;
  if (!(error instanceof Stripe.errors.StripeError)) {
    return new CallFailed("uncertain", errorClass(error));
  }
  if (error.statusCode === undefined) return new CallFailed("uncertain", error.type);
  const { statusCode: status, headers } = error;
  const code = `Stripe:${status}`;
  const retryAfterSeconds = readRetryAfter(headers?.["retry-after"]);
  if (status === 401 || status === 403) {
    return new CallFailed("no access", code, { retryAfterSeconds });
  }
  if (status === 429) return new CallFailed("not now", code, { retryAfterSeconds });
  if (status >= 500 || status === 409) {
    return new CallFailed("uncertain", code, { retryAfterSeconds });
  }
  return new CallFailed("refused", code);
}

function readRetryAfter(header: string | undefined): number | null {
  if (header === undefined || !/^\d{1,9}$/.test(header)) return null;
  return Math.min(Number(header), LONGEST_RETRY_AFTER_SECONDS);
}

/**
 * The idempotency key of a call that follows from an event: the same event and action give the same
 * key, so that Stripe answers a repeated call with the first one's result. Of an id that leaves no
 * room for the rest, the key holds the hash.
 * https://docs.stripe.com/api/idempotent_requests (keys of up to 255 characters, kept for a day)
 *
 * @param action a word such as `update-customer-metadata`.
 */
export function idempotencyKey(eventId: string, action: string): string {
  if (!/^[a-z][a-z0-9-]{0,63}$/.test(action)) {
    throw new RangeError(`Bug! "${action}" makes no idempotency key.`);
  }
  const key = `webhook:${eventId}:${action}`;
  if (key.length <= LONGEST_KEY) return key;
  const hash = createHash("sha256").update(eventId).digest("hex");
  return `webhook:sha256-${hash}:${action}`;
}

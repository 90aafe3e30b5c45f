/**
 * A fake of Stripe's API on this machine, for what follows from a booked payment. It keeps the first
 * answer by idempotency key as Stripe does, a 500 included: a repeated call is answered with that;
 * with other parameters, 400; while the first is being acted on, 409. Other failures, which come on
 * demand, are not kept. https://docs.stripe.com/api/idempotent_requests
 *
 * Not imitated: authentication beyond the key's presence, validation, rate limits of its own, and
 * everything but updates of customers and what `stripe-lists.ts` reads. Keys are forgotten when told
 * to, and not after a day.
 */
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { StripeEvent } from "./events.ts";
import { LOOPBACK } from "./ports.ts";
import { type ListRequest, StripeLists } from "./stripe-lists.ts";

/** One request as it arrived. */
export interface ApiCall {
  readonly key: string;
  readonly customer: string;
  /** The connected account in whose name it is made; null: the key's own. */
  readonly account: string | null;
  readonly parameters: string;
  /** Counts from 1, of its key. */
  readonly n: number;
}

/** A customer was told of a payment, whatever the key. */
export interface Telling {
  readonly customer: string;
  /** Null when the call named none. */
  readonly invoice: string | null;
}

/**
 * - `lose the answer`: it is done, and the connection closed instead of an answer.
 * - `lose the request`: nothing is done, and the connection is closed.
 * - a status: nothing is done, and that is the answer, with this body where one is given; a 500 also to each repetition of the call.
 */
export type ApiFault =
  | "lose the answer"
  | "lose the request"
  | { readonly status: number; readonly retryAfterSeconds?: number; readonly body?: object };

export interface ApiOptions {
  /**
   * Asked for every call, once its key is taken and before anything is done; null: it goes well. May
   * take its time, in which the key is in use.
   */
  readonly fault?: (call: ApiCall) => ApiFault | null | Promise<ApiFault | null>;
  /** The same for every request that reads a list. */
  readonly listFault?: (request: ListRequest) => ApiFault | null | Promise<ApiFault | null>;
}

export interface FakeStripeApi {
  readonly url: string;
  readonly calls: readonly ApiCall[];
  /** How often each key took effect; more than once is once too often. */
  readonly effects: ReadonlyMap<string, number>;
  /** The same by payment, one for each time: two keys for one payment are seen here alone. */
  readonly told: readonly Telling[];
  /** What can be read, and what was. */
  readonly lists: StripeLists;
  /** Forgets the keys, as Stripe does after a day, and not what they did. */
  readonly forget: () => void;
  /** As if it had never been called. */
  readonly reset: () => void;
  readonly close: () => Promise<void>;
}

interface Kept {
  readonly parameters: string;
  /** Null while the first call is being acted on. */
  answer: { readonly status: number; readonly body: object } | null;
}

/** As the consequences of a payment name it in the form. */
const INVOICE = "metadata[last_paid_invoice]";
/** The status that Stripe repeats, though it is a failure. */
const KEPT_FAILURE = 500;
const FAILED = { status: KEPT_FAILURE, body: apiError("api_error") };

export async function startStripeApi({
  fault,
  listFault,
}: ApiOptions = {}): Promise<FakeStripeApi> {
  const lists = new StripeLists();
  const calls: ApiCall[] = [];
  const effects = new Map<string, number>();
  const told: Telling[] = [];
  const kept = new Map<string, Kept>();

  const handle = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    // Not Stripe's: for whoever audits from another process.
    if (request.url === "/report") {
      const counts = Map.groupBy(calls, ({ key }) => key);
      const made = [...counts].map(([key, group]) => [key, group.length]);
      return answer(response, 200, {
        calls: Object.fromEntries(made),
        effects: Object.fromEntries(effects),
        told,
      });
    }
    // Not Stripe's: what happened there, told by a simulation in another process.
    if (request.method === "POST" && request.url === "/simulation") {
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- Only the simulation posts here.
      for (const event of JSON.parse(await textOf(request)) as StripeEvent[]) lists.addEvent(event);
      return answer(response, 200, {});
    }
    if (request.method === "GET") return answerList(request, response);
    const customer = /^\/v1\/customers\/([^/?]+)$/.exec(request.url ?? "")?.[1];
    const parameters = await textOf(request);
    const key = request.headers["idempotency-key"];
    if (request.method !== "POST" || customer === undefined || typeof key !== "string") {
      return answer(response, 404, apiError("invalid_request_error"));
    }
    const n = 1 + calls.filter((call) => call.key === key).length;
    const call = { key, customer, account: accountOf(request), parameters, n };
    calls.push(call);
    const known = kept.get(key);
    if (known && known.parameters !== parameters) {
      return answer(response, 400, apiError("idempotency_error"));
    }
    if (known?.answer === null) return answer(response, 409, apiError("idempotency_error"));
    const entry: Kept = known ?? { parameters, answer: null };
    kept.set(key, entry);
    try {
      const failing = (await fault?.(call)) ?? null;
      if (failing === "lose the request") return void request.socket.destroy();
      if (failing !== null && failing !== "lose the answer" && failing.status !== KEPT_FAILURE) {
        const { status, retryAfterSeconds } = failing;
        if (retryAfterSeconds !== undefined) response.setHeader("retry-after", retryAfterSeconds);
        return answer(response, status, apiError("api_error"));
      }
      entry.answer ??= failing === null || failing === "lose the answer" ? act(call) : FAILED;
      if (failing === "lose the answer") return void request.socket.destroy();
      return answer(response, entry.answer.status, entry.answer.body);
    } finally {
      if (entry.answer === null) kept.delete(key);
    }
  };

  const act = ({ key, customer, parameters }: ApiCall): NonNullable<Kept["answer"]> => {
    effects.set(key, (effects.get(key) ?? 0) + 1);
    told.push({ customer, invoice: new URLSearchParams(parameters).get(INVOICE) });
    return { status: 200, body: { id: customer, object: "customer" } };
  };

  const answerList = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const url = new URL(request.url ?? "", "http://stripe.test");
    const listing: ListRequest = {
      path: url.pathname,
      account: accountOf(request),
      parameters: url.searchParams,
      n: lists.requests.length + 1,
    };
    lists.requests.push(listing);
    const failing = (await listFault?.(listing)) ?? null;
    if (typeof failing === "string") return void request.socket.destroy();
    if (failing !== null) {
      const { status, retryAfterSeconds, body } = failing;
      if (retryAfterSeconds !== undefined) response.setHeader("retry-after", retryAfterSeconds);
      return answer(response, status, body ?? apiError("api_error"));
    }
    const found = lists.answer(listing);
    if (found === null) return answer(response, 404, apiError("invalid_request_error"));
    return answer(response, found.status, found.body);
  };

  const server = createServer((request, response) => {
    handle(request, response).catch(() => request.socket.destroy());
  });
  server.listen(0, LOOPBACK);
  await once(server, "listening");
  const address = server.address();
  if (typeof address !== "object" || address === null) throw new Error("Bug! This is TCP.");
  return {
    url: `http://${LOOPBACK}:${address.port}`,
    calls,
    effects,
    told,
    lists,
    forget: () => kept.clear(),
    reset: () => {
      calls.length = 0;
      told.length = 0;
      effects.clear();
      kept.clear();
    },
    close: async () => {
      const closed = once(server, "close");
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

function accountOf({ headers }: IncomingMessage): string | null {
  const account = headers["stripe-account"] ?? headers["stripe-context"];
  return typeof account === "string" ? account : null;
}

async function textOf(request: IncomingMessage): Promise<string> {
  let text = "";
  for await (const chunk of request) text += String(chunk);
  return text;
}

function answer(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { "content-type": "application/json", "request-id": "req_fake" });
  response.end(JSON.stringify(body));
}

function apiError(type: string): object {
  return { error: { type, message: "The fake API was told to fail." } };
}

/** Some of the calls fail, in every way that passes; each succeeds in the end. */
export function sometimes(random: () => number, percent: number): NonNullable<ApiOptions["fault"]> {
  const faults: readonly ApiFault[] = [
    "lose the answer",
    "lose the request",
    { status: 429, retryAfterSeconds: 1 },
    { status: 503 },
    { status: 409 },
  ];
  return ({ n }) => {
    // Otherwise the last of very many would be waited for.
    if (n > 2 || random() * 100 >= percent) return null;
    return faults[Math.floor(random() * faults.length)] ?? null;
  };
}

/**
 * What Stripe's API lists, a page at a time, newest first.
 * https://docs.stripe.com/api/events/list, https://docs.stripe.com/api/pagination
 */
import type { Stripe } from "stripe";
import * as v from "valibot";
import type { StripeApi } from "../config.ts";
import { parseKeepingDigits } from "../db/storable-json.ts";
import { callStripe, createStripe } from "./api.ts";
import { CallFailed } from "./call-failed.ts";
import { EventId, EventType } from "./verify.ts";

/** An event of the list, and what is needed to judge it. */
export interface ListedEvent {
  readonly id: string;
  readonly type: string;
  readonly livemode: boolean | null;
  /** When it was created, in seconds since 1970. */
  readonly created: number;
  /** Its text with every digit; it names the connected account whose list it stood in. */
  readonly json: () => string;
}

export interface EventPage {
  /** Each once. */
  readonly events: readonly ListedEvent[];
  /** How many more there were that are no events. */
  readonly unusable: number;
  /** The last one of the page, behind which the next begins; null: there is no next. */
  readonly next: string | null;
}

export interface EventQuery {
  /** The connected account whose list is read; null: the key's own account. */
  readonly account: string | null;
  /** Created between the two, seconds since 1970, both included. */
  readonly from: number;
  readonly to: number;
  /** The event behind which the page begins; null: the newest. */
  readonly after: string | null;
  readonly types: readonly string[];
  /** How many at most; Stripe gives up to 100. */
  readonly limit: number;
}

/** @throws CallFailed */
export type ListEvents = (query: EventQuery) => Promise<EventPage>;

/** The most that Stripe gives. */
export const LARGEST_PAGE = 100;
const UNREADABLE_PAGE = "UnreadablePage";
/** The code of a list that says it goes on, and does not. */
export const LIST_STANDS_STILL = "ListStandsStill";
/** More types than that cannot be asked for; then all are. */
const MOST_TYPES = 20;

const LATEST = Date.UTC(2100, 0, 1) / 1_000;
const Listed = v.looseObject({
  id: EventId,
  type: EventType,
  created: v.pipe(v.number(), v.safeInteger(), v.minValue(0), v.maxValue(LATEST)),
  livemode: v.fallback(v.nullable(v.boolean()), null),
});
const Page = v.object({ data: v.array(v.unknown()), has_more: v.boolean() });
const Named = v.object({ id: v.pipe(v.string(), v.minLength(1), v.maxLength(255)) });

export function eventLists(api: StripeApi): ListEvents {
  return async (query) => {
    const { account, after } = query;
    // The SDK parses what it gets, and a number's last digits are in the text alone.
    let text = "";
    const stripe = createStripe(api, async (input, init) => {
      const response = await fetch(input, init);
      text = await response.text();
      return new Response(text, response);
    });
    await callStripe(() => stripe.events.list(parametersOf(query), optionsFor(account)));
    const { data, has_more } = readPage(text);
    const events = new Map<string, ListedEvent>();
    let unusable = 0;
    for (const item of data) {
      const listed = v.safeParse(Listed, item);
      if (listed.success) events.set(listed.output.id, asListed(listed.output, account));
      else unusable += 1;
    }
    return { events: [...events.values()], unusable, next: has_more ? behind(data, after) : null };
  };
}

function asListed(event: v.InferOutput<typeof Listed>, account: string | null): ListedEvent {
  const { id, type, livemode, created } = event;
  const json = (): string => JSON.stringify(account === null ? event : { ...event, account });
  return { id, type, livemode, created, json };
}

function parametersOf({ from, to, after, types, limit }: EventQuery): Stripe.EventListParams {
  return {
    created: { gte: from, lte: to },
    limit,
    ...(after === null ? {} : { starting_after: after }),
    ...(types.length > 0 && types.length <= MOST_TYPES ? { types: [...types] } : {}),
  };
}

function optionsFor(account: string | null): Stripe.RequestOptions {
  return account === null ? {} : { stripeAccount: account };
}

/** @throws CallFailed when it is no list, or so deep that it cannot be read. */
function readPage(text: string): v.InferOutput<typeof Page> {
  try {
    return v.parse(Page, parseKeepingDigits(text));
  } catch {
    throw new CallFailed("uncertain", UNREADABLE_PAGE);
  }
}

/** @throws CallFailed when the list says that it goes on, and does not. */
function behind(data: readonly unknown[], after: string | null): string {
  const last = v.safeParse(Named, data.at(-1));
  if (!last.success || last.output.id === after)
    throw new CallFailed("uncertain", LIST_STANDS_STILL);
  return last.output.id;
}

export type InvoiceObject = Readonly<Record<string, unknown>> & { readonly id: string };

/** The invoices of one account. Each of these throws CallFailed. */
export interface InvoiceLists {
  /** Those created since (seconds since 1970), newest first, behind one of them. */
  readonly created: (
    since: number,
    after: string | null,
  ) => Promise<{ readonly invoices: readonly InvoiceObject[]; readonly next: string | null }>;
  /** One by its id; null: there is none. */
  readonly read: (id: string) => Promise<InvoiceObject | null>;
}

/** @param account a connected account; null: the key's own. */
export function invoiceLists(api: StripeApi, account: string | null): InvoiceLists {
  const stripe = createStripe(api);
  const options = optionsFor(account);
  return {
    created: async (since, after) => {
      const { data, has_more } = await callStripe(() =>
        stripe.invoices.list(
          {
            created: { gte: since },
            limit: LARGEST_PAGE,
            ...(after === null ? {} : { starting_after: after }),
          },
          options,
        ),
      );
      if (!v.is(v.array(Named), data)) throw new CallFailed("uncertain", UNREADABLE_PAGE);
      return { invoices: data.map(toObject), next: has_more ? behind(data, after) : null };
    },
    read: async (id) => {
      try {
        const invoice = await callStripe(() => stripe.invoices.retrieve(id, {}, options));
        if (invoice.id !== id) throw new CallFailed("uncertain", "UnexpectedAnswer");
        return "deleted" in invoice ? null : toObject(invoice);
      } catch (error) {
        if (error instanceof CallFailed && error.code === "Stripe:404") return null;
        throw error;
      }
    },
  };
}

function toObject(invoice: Stripe.Invoice): InvoiceObject {
  return { ...invoice };
}

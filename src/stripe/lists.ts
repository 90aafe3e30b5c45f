/**
 * What Stripe's API lists, a page at a time, newest first.
 * https://docs.stripe.com/api/events/list, https://docs.stripe.com/api/pagination
 */
import type { Stripe } from "stripe";
import * as v from "valibot";
import type { StripeApi } from "../config.ts";
import { parseKeepingDigits } from "../db/storable-json.ts";
import { callStripe, CallFailed, createStripe } from "./api.ts";

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
  readonly events: readonly ListedEvent[];
  /** Whether older ones follow. */
  readonly more: boolean;
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
}

/** @throws CallFailed */
export type ListEvents = (query: EventQuery) => Promise<EventPage>;

/** The most that Stripe gives. */
const PAGE_SIZE = 100;
/** More types than that cannot be asked for; then all are. */
const MOST_TYPES = 20;

const Page = v.object({
  data: v.array(
    v.looseObject({
      id: v.string(),
      type: v.string(),
      created: v.pipe(v.number(), v.safeInteger()),
      livemode: v.fallback(v.nullable(v.boolean()), null),
    }),
  ),
  has_more: v.boolean(),
});

export function eventLists(api: StripeApi): ListEvents {
  return async ({ account, from, to, after, types }) => {
    // The SDK parses what it gets, and a number's last digits are in the text alone.
    let text = "";
    const stripe = createStripe(api, async (input, init) => {
      const response = await fetch(input, init);
      text = await response.text();
      return new Response(text, response);
    });
    await callStripe(() =>
      stripe.events.list(
        {
          created: { gte: from, lte: to },
          limit: PAGE_SIZE,
          ...(after === null ? {} : { starting_after: after }),
          ...(types.length > 0 && types.length <= MOST_TYPES ? { types: [...types] } : {}),
        },
        account === null ? {} : { stripeAccount: account },
      ),
    );
    const { data, has_more } = v.parse(Page, parseKeepingDigits(text));
    return {
      more: has_more,
      events: data.map((event) => ({
        id: event.id,
        type: event.type,
        livemode: event.livemode,
        created: event.created,
        json: () => JSON.stringify(account === null ? event : { ...event, account }),
      })),
    };
  };
}

export type InvoiceObject = Readonly<Record<string, unknown>> & { readonly id: string };

/** The invoices of one account. Each of these throws CallFailed. */
export interface InvoiceLists {
  /** Those created since (seconds since 1970), newest first, behind one of them. */
  readonly created: (
    since: number,
    after: string | null,
  ) => Promise<{ readonly invoices: readonly InvoiceObject[]; readonly more: boolean }>;
  /** One by its id; null: there is none. */
  readonly read: (id: string) => Promise<InvoiceObject | null>;
}

/** @param account a connected account; null: the key's own. */
export function invoiceLists(api: StripeApi, account: string | null): InvoiceLists {
  const stripe = createStripe(api);
  const options = account === null ? {} : { stripeAccount: account };
  return {
    created: async (since, after) => {
      const { data, has_more } = await callStripe(() =>
        stripe.invoices.list(
          {
            created: { gte: since },
            limit: PAGE_SIZE,
            ...(after === null ? {} : { starting_after: after }),
          },
          options,
        ),
      );
      return { invoices: data.map(toObject), more: has_more };
    },
    read: async (id) => {
      try {
        const invoice = await callStripe(() => stripe.invoices.retrieve(id, {}, options));
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

/**
 * A stream of events as Stripe would send it: many invoices, each with its history, told in the
 * shapes of several API versions, between events of no concern. The same seed and run give the
 * same stream. Pure; runs in Node and in workerd.
 */
import {
  type EventOptions,
  type InvoiceEventType,
  type StripeEvent,
  UNRELATED,
  invoiceEvent,
  stripeEvent,
  thinNotification,
} from "./events.ts";
import { type Change, HISTORIES, type History } from "./histories.ts";
import {
  API_VERSIONS,
  type ApiVersion,
  type CustomerReference,
  type InvoiceFacts,
  type InvoiceStatus,
} from "./invoice-shapes.ts";
import { Random } from "./random.ts";

export type EndpointName = "billing" | "connect";

/** An event and the endpoint that Stripe sends it to. */
export interface Sent<Name extends string = EndpointName> {
  readonly endpoint: Name;
  readonly event: StripeEvent;
}

export interface StreamOptions {
  readonly seed: number;
  /** Part of every id, so that two runs in one database do not meet. Letters and digits. */
  readonly run: string;
  readonly invoices: number;
  /** Whether the account is live; a few events say otherwise and belong to another endpoint. */
  readonly livemode: boolean;
  /** When the stream begins, whole seconds since 1970. */
  readonly begin: number;
}

/** The events in the order in which they happened. */
export function makeStream(options: StreamOptions): readonly Sent[] {
  return new Stream(options).make();
}

/** Which events one change causes, and in which state they say the invoice is. */
const TOLD_AS: Readonly<Record<Change, readonly [InvoiceStatus, ...InvoiceEventType[]]>> = {
  create: ["draft", "invoice.created"],
  edit: ["draft", "invoice.updated"],
  finalize: ["open", "invoice.finalized", "invoice.updated"],
  fail: ["open", "invoice.payment_failed", "invoice.updated"],
  pay: ["paid", "invoice.paid", "invoice.payment_succeeded", "invoice.updated"],
  pay_other_amount: ["paid", "invoice.payment_succeeded"],
  mark_uncollectible: ["uncollectible", "invoice.marked_uncollectible", "invoice.updated"],
  void: ["void", "invoice.voided", "invoice.updated"],
  delete: ["draft", "invoice.deleted"],
};

const DAY_SECONDS = 86_400;
/** Invoices begin in the first days; the longest history ends some 15 days later. */
const BEGINNINGS_SECONDS = 13 * DAY_SECONDS;
const BASE_36 = 36;

const byWeight = (history: History) => [history.weight, history] as const;

class Stream {
  readonly #options: StreamOptions;
  readonly #random: Random;
  readonly #sent: { at: number; sent: Sent }[] = [];
  #ids = 0;

  constructor(options: StreamOptions) {
    this.#options = options;
    this.#random = new Random(options.seed);
  }

  make(): readonly Sent[] {
    const all: readonly History[] = Object.values(HISTORIES);
    const [first = HISTORIES.paid, ...others] = all;
    // A stream that is long enough tells each history once, so that it lacks none.
    const complete = this.#options.invoices >= all.length;
    for (let index = 0; index < this.#options.invoices; index += 1) {
      const likely = this.#random.weighted([byWeight(first), ...others.map(byWeight)]);
      this.#tell((complete && all[index]) || likely, index);
      if (this.#random.chance(25)) this.#addUnrelated();
    }
    if (complete) this.#addOddities();
    return this.#sent.toSorted((a, b) => a.at - b.at).map(({ sent }) => sent);
  }

  #tell({ changes, free }: History, index: number): void {
    const random = this.#random;
    const apiVersion = API_VERSIONS[index % API_VERSIONS.length] ?? API_VERSIONS[0];
    const currency = random.pick(["usd", "eur", "gbp", "jpy", "kwd"]);
    const created = this.#anyTime();
    const facts: InvoiceFacts = {
      id: this.#id("in"),
      status: "draft",
      customer: this.#customer(),
      currency,
      // Dinars have three decimals and are charged in tens of their smallest unit.
      total: free ? 0 : random.integer(50, 99_999) * (currency === "kwd" ? 10 : 1),
      amountPaid: 0,
      livemode: this.#options.livemode,
      created,
      changed: created,
    };
    let changed = created;
    for (const change of changes) {
      // Finalising and paying often fall into the second of creation: order cannot be told from it.
      changed += random.chance(60) ? 0 : random.integer(1, 3 * DAY_SECONDS);
      this.#tellChange(change, { ...facts, changed }, apiVersion);
    }
  }

  #tellChange(change: Change, before: InvoiceFacts, apiVersion: ApiVersion): void {
    const random = this.#random;
    const [status, ...types] = TOLD_AS[change];
    const total = change === "pay_other_amount" ? before.total + 100 : before.total;
    const facts = { ...before, status, total, amountPaid: status === "paid" ? total : 0 };
    for (const type of types) {
      // Stripe now and then makes two Event objects of one change.
      for (let copies = random.chance(6) ? 2 : 1; copies > 0; copies -= 1) {
        const event = invoiceEvent(type, facts, {
          id: this.#id("evt"),
          apiVersion,
          ...(type === "invoice.updated" ? { previousAttributes: { metadata: {} } } : {}),
        });
        this.#send("billing", facts.changed, event);
      }
    }
  }

  #addUnrelated(): void {
    const [first = "customer.updated", ...others] = Object.keys(UNRELATED);
    const type = this.#random.pick([first, ...others]);
    const object = UNRELATED[type]?.(this.#id("").slice(1)) ?? {};
    const connect = this.#random.chance(30);
    const options = this.#eventOptions(connect ? { account: "acct_1Invented" } : {});
    this.#send(
      connect ? "connect" : "billing",
      options.created,
      stripeEvent(type, object, options),
    );
  }

  /** One each of what an endpoint must recognise as not its own. */
  #addOddities(): void {
    const { livemode } = this.#options;
    const pay = (options: Partial<EventOptions>) => {
      const given = this.#eventOptions(options);
      const facts: InvoiceFacts = {
        id: this.#id("in"),
        status: "paid",
        customer: "cus_invented",
        currency: "eur",
        total: 4200,
        amountPaid: 4200,
        livemode: given.livemode,
        created: given.created,
        changed: given.created,
      };
      return invoiceEvent("invoice.paid", facts, given);
    };
    const send = (endpoint: EndpointName, event: StripeEvent) =>
      this.#send(endpoint, this.#anyTime(), event);

    const own = pay({});
    send("billing", own);
    send("connect", own);
    const connected = pay({ account: "acct_1Invented" });
    send("billing", connected);
    send("connect", connected);
    send("billing", pay({ livemode: !livemode }));
    send("billing", pay({ id: `${this.#id("evt")}_00000000000000` }));
    const { created } = this.#eventOptions({});
    send("billing", thinNotification(this.#id("evt"), { created, livemode }));
  }

  #customer(): CustomerReference {
    const id = this.#id("cus");
    return this.#random.weighted<CustomerReference>([
      [85, id],
      [5, { id }],
      [5, { id, deleted: true }],
      [5, null],
    ]);
  }

  #eventOptions(given: Partial<EventOptions>): EventOptions {
    return {
      id: this.#id("evt"),
      apiVersion: this.#random.pick(API_VERSIONS),
      livemode: this.#options.livemode,
      created: this.#anyTime(),
      ...given,
    };
  }

  #anyTime(): number {
    return this.#options.begin + this.#random.integer(0, BEGINNINGS_SECONDS);
  }

  #id(prefix: string): string {
    this.#ids += 1;
    return `${prefix}_1${this.#options.run}${this.#ids.toString(BASE_36).padStart(5, "0")}`;
  }

  #send(endpoint: EndpointName, at: number, event: StripeEvent): void {
    this.#sent.push({ at, sent: { endpoint, event } });
  }
}

/** A history as the events that tell of it. The same history has the same ids. Pure. */
import {
  type EventOptions,
  type InvoiceEventType,
  invoiceEvent,
  type StripeEvent,
  stripeEvent,
  thinNotification,
} from "../../local/events.ts";
import type { CustomerReference, InvoiceFacts } from "../../local/invoice-shapes.ts";
import type { Sent } from "../../local/stream.ts";
import {
  type Change,
  type History,
  type Invoice,
  legalSteps,
  type State,
  type Stray,
  type Telling,
  type Where,
} from "./lifecycle-model.ts";

const TYPE: Readonly<Record<Change, InvoiceEventType | "payment">> = {
  create: "invoice.created",
  edit: "invoice.updated",
  delete: "invoice.deleted",
  finalize: "invoice.finalized",
  fail: "invoice.payment_failed",
  mark_uncollectible: "invoice.marked_uncollectible",
  void: "invoice.voided",
  pay: "payment",
  pay_other_amount: "payment",
  void_paid: "invoice.voided",
  pay_void: "payment",
};

/** Everything happens within one second, whole seconds since 1970: order is told by nothing. */
const AT = 1_790_000_000;
/** What a stray event speaks of, and no other. */
const STRAY_AMOUNT = 9_999;

/** An event, an endpoint that Stripe sends it to, and the change that it tells of. */
export interface Told extends Sent<Where> {
  /** Whose history it belongs to, as an index; null for a stray. */
  readonly story: number | null;
  /** Of the change, in a life with everything in it. */
  readonly place: number;
  /** Which of the deliveries it is that tell of this change. */
  readonly n: number;
  readonly count: number;
}

/** One history after the other. */
export function tell({ invoices, strays }: History): readonly Told[] {
  let ids = 0;
  const nextId = (): string => `evt_1p${++ids}`;
  return [
    ...invoices.flatMap((invoice, index) => tellInvoice(invoice, index, nextId)),
    ...strays.flatMap((stray) => numbered(tellStray(stray, nextId), null, stray.place)),
  ];
}

function numbered(sent: readonly Sent<Where>[], story: number | null, place: number): Told[] {
  return sent.map((one, n) => ({ ...one, story, place, n, count: sent.length }));
}

function tellInvoice({ free, steps }: Invoice, index: number, nextId: () => string): Told[] {
  return legalSteps(steps).flatMap(({ change, place, state, told }) => {
    const total = free ? 0 : 1_000 * (index + 1);
    const facts = factsOf(index, {
      status: statusIn(state),
      customer: customerOf(`cus_1p${index}`, told),
      total: change === "pay_other_amount" ? total + 100 : total,
    });
    const sent = typesOf(change, told).flatMap((type) =>
      Array.from({ length: told.copies }, nextId).flatMap((id) => {
        const event = failing(invoiceEvent(type, facts, { id, apiVersion: told.apiVersion }), told);
        return told.to.map((endpoint) => ({ endpoint, event }));
      }),
    );
    return numbered(sent, index, place);
  });
}

function typesOf(change: Change, { payment, beside }: Telling): readonly InvoiceEventType[] {
  const type = TYPE[change];
  const types = type === "payment" ? payment : [type];
  return beside && change !== "edit" ? [...types, "invoice.updated"] : types;
}

function statusIn(state: State): InvoiceFacts["status"] {
  return state === "unheard" || state === "deleted" ? "draft" : state;
}

function customerOf(id: string, { customer }: Telling): CustomerReference {
  switch (customer) {
    case "id":
      return id;
    case "object":
      return { id };
    case "deleted":
      return { id, deleted: true };
    case "null":
      return null;
  }
}

function factsOf(
  index: number,
  { total, ...given }: Pick<InvoiceFacts, "total" | "status" | "customer">,
): InvoiceFacts {
  return {
    id: `in_1p${index}`,
    currency: "eur",
    total,
    amountPaid: given.status === "paid" ? total : 0,
    livemode: false,
    created: AT,
    changed: AT,
    ...given,
  };
}

function failing(event: StripeEvent, { failure }: Telling): StripeEvent {
  if (failure === null) return event;
  const metadata = { proof: JSON.stringify(failure) };
  return { ...event, data: { object: { ...event.data?.object, metadata } } };
}

function tellStray({ kind, invoice }: Stray, nextId: () => string): Sent<Where>[] {
  const id = nextId();
  const given = { id, apiVersion: "2026-10-28.endive", livemode: false, created: AT } as const;
  const pay = (other: Partial<EventOptions> = {}): StripeEvent =>
    invoiceEvent(
      "invoice.paid",
      factsOf(invoice, { total: STRAY_AMOUNT, status: "paid", customer: null }),
      { ...given, ...other },
    );
  switch (kind) {
    case "unrelated":
      return toOwn(stripeEvent("customer.updated", { id: `cus_1p${invoice}` }, given));
    case "livemode":
      return toOwn(pay({ livemode: true }));
    case "test_id":
      return toOwn(pay({ id: `${id}_00000000000000` }));
    case "thin":
      return toOwn(thinNotification(id, given));
    case "connected": {
      const event = pay({ account: "acct_1Invented" });
      return [...toOwn(event), { endpoint: "connect", event }];
    }
    case "own_at_connect":
      return [{ endpoint: "connect", event: pay() }];
  }
}

/** To both endpoints of our own account. */
function toOwn(event: StripeEvent): Sent<Where>[] {
  return [
    { endpoint: "billing", event },
    { endpoint: "later", event },
  ];
}

/**
 * The books that a list of events leads to, one event after the other: the rules written once
 * more, in plain words and without the product's code, for tests to compare with.
 */
import type { StripeEvent } from "../local/events.ts";
import type { InvoiceBooks } from "../worker/invoices.ts";

type Invoice = NonNullable<InvoiceBooks["invoice"]>;

/** All that is known of one invoice after some events. */
export interface Told {
  readonly books: InvoiceBooks;
  /** What each event came to. */
  readonly outcomes: readonly ("processed" | "needs_review")[];
  /** The event that first made the invoice paid. */
  readonly paidBy: string | null;
  /** The last event that changed the invoice's row. */
  readonly changedBy: string | null;
}

export const NOTHING_TOLD: Told = {
  books: { invoice: null, entries: [], messages: [], discrepancies: [] },
  outcomes: [],
  paidBy: null,
  changedBy: null,
};

/** From the beginning to the two ends. */
const RANK: Readonly<Record<string, number>> = {
  draft: 0,
  open: 1,
  uncollectible: 2,
  paid: 3,
  void: 3,
};

/** The status that goes without saying, for objects that have none. */
const IMPLIED: Readonly<Record<string, string>> = {
  "invoice.created": "draft",
  "invoice.finalized": "open",
  "invoice.payment_failed": "open",
  "invoice.marked_uncollectible": "uncollectible",
  "invoice.voided": "void",
  "invoice.paid": "paid",
  "invoice.payment_succeeded": "paid",
};

export function tell(told: Told, event: StripeEvent): Told {
  const object = event.data?.object ?? {};
  const processed = { ...told, outcomes: [...told.outcomes, "processed" as const] };
  const needsReview = { ...told, outcomes: [...told.outcomes, "needs_review" as const] };
  if (event.type === "invoice.deleted") return processed;

  const status = object["status"] ?? IMPLIED[event.type] ?? null;
  if (status !== null && !(typeof status === "string" && status in RANK)) return needsReview;
  if (event.type === "invoice.paid" && status !== "paid") return needsReview;
  const isPayment = ["invoice.paid", "invoice.payment_succeeded"].includes(event.type);
  const pays = isPayment && status === "paid";
  const amount = object["amount_paid"];
  if (pays && !isAmount(amount)) return needsReview;

  const before = told.books.invoice;
  const row = follow(before, status, object);
  const money = pays && isAmount(amount) ? amount : null;
  const books = settle({ ...told.books, invoice: row }, event, money);
  const changed = JSON.stringify(books.invoice) !== JSON.stringify(before);
  return {
    ...processed,
    books:
      event.type === "invoice.voided" && status === "void" && row.status === "paid"
        ? ask(books, "void_after_paid", event.id)
        : books,
    paidBy: row.paid && before?.paid !== true ? event.id : told.paidBy,
    changedBy: changed ? event.id : told.changedBy,
  };
}

function follow(
  before: Invoice | null,
  status: string | null,
  object: Readonly<Record<string, unknown>>,
): Invoice {
  const customer = customerOf(object["customer"]);
  const currency = currencyOf(object["currency"]);
  if (before === null) {
    return {
      status: status ?? "open",
      customer_id: customer,
      currency,
      amount_paid: 0,
      paid: status === "paid",
    };
  }
  const rises = status !== null && rank(status) > rank(before.status);
  const now = rises ? status : before.status;
  return {
    status: now,
    customer_id: before.customer_id ?? customer,
    currency: before.currency ?? currency,
    amount_paid: before.amount_paid,
    paid: now === "paid",
  };
}

/** Books the money, or finds why it cannot be. */
function settle(books: InvoiceBooks, event: StripeEvent, money: number | null): InvoiceBooks {
  const { invoice, entries, messages } = books;
  if (invoice === null || money === null) return books;
  if (invoice.status === "void") return ask(books, "paid_after_void", event.id);
  const currency = currencyOf(event.data?.object["currency"]);
  const [entry] = entries;
  if (entry) {
    const sameCurrency =
      entry.currency === null || currency === null || entry.currency === currency;
    const agrees = entry.amount === money && sameCurrency;
    return agrees ? books : ask(books, "payment_mismatch", event.id);
  }
  if (money === 0) return books;
  const booked = { amount: money, currency, event_id: event.id };
  const { customer_id } = invoice;
  const addressee = { invoice_id: String(event.data?.object["id"]), customer_id };
  return {
    ...books,
    invoice: { ...invoice, amount_paid: money },
    entries: [booked],
    messages: [...messages, { ...booked, ...addressee }],
  };
}

/** Once for each kind; in the order of the alphabet. */
function ask(books: InvoiceBooks, kind: string, eventId: string): InvoiceBooks {
  if (books.discrepancies.some((known) => known.kind === kind)) return books;
  const discrepancies = [...books.discrepancies, { kind, event_id: eventId }];
  return {
    ...books,
    discrepancies: discrepancies.toSorted((a, b) => (a.kind < b.kind ? -1 : 1)),
  };
}

function rank(status: string): number {
  return RANK[status] ?? -1;
}

function isAmount(value: unknown): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0;
}

function currencyOf(value: unknown): string | null {
  if (typeof value !== "string") return null;
  const currency = value.toLowerCase();
  return /^[a-z]{3}$/.test(currency) ? currency : null;
}

function customerOf(value: unknown): string | null {
  const id = typeof value === "object" && value !== null && "id" in value ? value.id : value;
  return typeof id === "string" && id !== "" ? id : null;
}

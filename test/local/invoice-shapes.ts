/**
 * One invoice in the shape of any API version from 2018 to 2026: which fields a version has is a
 * table, so that what Stripe added, renamed and removed can be read off it. All data is invented.
 * Pure; runs in Node and in workerd.
 */
export type JsonObject = Readonly<Record<string, unknown>>;
export type InvoiceStatus = "draft" | "open" | "paid" | "void" | "uncollectible";
export type CustomerReference = null | string | { readonly id: string; readonly deleted?: boolean };

/** Versions between which the shape of an invoice changed, oldest first. */
export const API_VERSIONS = [
  "2018-10-31",
  "2018-11-08",
  "2019-03-14",
  "2019-12-03",
  "2020-08-27",
  "2022-11-15",
  "2024-06-20",
  "2024-09-30.acacia",
  "2025-03-31.basil",
  "2025-09-30.clover",
  "2026-10-28.endive",
] as const;
export type ApiVersion = (typeof API_VERSIONS)[number];

/** What is true of the invoice, whatever version tells it. Amounts are in minor units. */
export interface InvoiceFacts {
  readonly id: string;
  readonly status: InvoiceStatus;
  readonly customer: CustomerReference;
  readonly currency: string;
  readonly total: number;
  readonly amountPaid: number;
  readonly livemode: boolean;
  /** Whole seconds since 1970. */
  readonly created: number;
  /** The last change, whole seconds since 1970. */
  readonly changed: number;
}

interface Fields {
  /** The first version with these fields. */
  readonly from?: string;
  /** The first version without them. */
  readonly until?: string;
  readonly of: (facts: InvoiceFacts) => JsonObject;
}

/** The part of an id that follows its prefix, to name what belongs to the same invoice. */
const suffix = ({ id }: InvoiceFacts) => id.replace(/^in_/, "");
const isFinal = ({ status }: InvoiceFacts) => status !== "draft";
const isPaid = ({ status }: InvoiceFacts) => status === "paid";
const wasCharged = (facts: InvoiceFacts) => isPaid(facts) && facts.amountPaid > 0;

const FIELDS: readonly Fields[] = [
  {
    of: (facts) => ({
      id: facts.id,
      object: "invoice",
      amount_due: facts.total,
      amount_paid: facts.amountPaid,
      amount_remaining: facts.total - facts.amountPaid,
      attempt_count: isFinal(facts) && facts.total > 0 ? 1 : 0,
      attempted: isFinal(facts),
      billing_reason: "subscription_cycle",
      currency: facts.currency,
      customer: customerField(facts),
      description: null,
      due_date: null,
      ending_balance: isFinal(facts) ? 0 : null,
      hosted_invoice_url: null,
      livemode: facts.livemode,
      metadata: { plan_code: "harbour-monthly", note: "Größe M, naïve ☕" },
      next_payment_attempt: null,
      number: isFinal(facts) ? `HRB-${suffix(facts).slice(-6).toUpperCase()}` : null,
      period_end: facts.created,
      period_start: facts.created - 30 * 86_400,
      receipt_number: null,
      starting_balance: 0,
      statement_descriptor: null,
      subtotal: facts.total,
      total: facts.total,
    }),
  },
  // `status` took the place of three booleans; the last of them, `paid`, stayed until basil.
  {
    until: "2018-11-08",
    of: (facts) => ({
      closed: ["paid", "void", "uncollectible"].includes(facts.status),
      forgiven: facts.status === "uncollectible",
    }),
  },
  {
    from: "2018-11-08",
    of: (facts) => ({ status: facts.status, auto_advance: facts.status === "open" }),
  },
  {
    until: "2019-03-14",
    of: (facts) => ({
      date: facts.created,
      finalized_at: isFinal(facts) ? facts.changed : null,
      application_fee: null,
    }),
  },
  {
    from: "2019-03-14",
    of: (facts) => ({
      created: facts.created,
      status_transitions: {
        finalized_at: isFinal(facts) ? facts.created : null,
        marked_uncollectible_at: facts.status === "uncollectible" ? facts.changed : null,
        paid_at: isPaid(facts) ? facts.changed : null,
        voided_at: facts.status === "void" ? facts.changed : null,
      },
    }),
  },
  { until: "2019-10-17", of: () => ({ billing: "charge_automatically" }) },
  { from: "2019-10-17", of: () => ({ collection_method: "charge_automatically" }) },
  { until: "2020-08-27", of: () => ({ tax_percent: null }) },
  {
    from: "2020-08-27",
    of: () => ({ account_country: "IE", discounts: [], default_tax_rates: [], footer: null }),
  },
  // One invoice can have several payments since basil, and says what it belongs to in `parent`.
  {
    until: "2025-03-31",
    of: (facts) => ({
      charge: wasCharged(facts) ? `ch_${suffix(facts)}` : null,
      paid: isPaid(facts),
      payment_intent: isFinal(facts) && facts.total > 0 ? `pi_${suffix(facts)}` : null,
      subscription: `sub_${suffix(facts)}`,
      tax: null,
    }),
  },
  {
    from: "2025-03-31",
    of: (facts) => ({
      amount_overpaid: 0,
      parent: {
        quote_details: null,
        subscription_details: { metadata: {}, subscription: `sub_${suffix(facts)}` },
        type: "subscription_details",
      },
      total_taxes: [],
    }),
  },
  { from: "2026-01-01", of: () => ({ customer_account: null, total_pretax_credit_amounts: [] }) },
];

/** The invoice as an event of this API version carries it in `data.object`. */
export function invoiceObject(facts: InvoiceFacts, version: ApiVersion): JsonObject {
  const shape: Record<string, unknown> = {};
  for (const { from = "", until, of } of FIELDS) {
    if (version >= from && (until === undefined || version < until)) {
      Object.assign(shape, of(facts));
    }
  }
  return { ...shape, lines: lines(facts, version) };
}

function customerField({ customer, livemode }: InvoiceFacts): unknown {
  if (customer === null || typeof customer === "string") return customer;
  return customer.deleted === true
    ? { id: customer.id, object: "customer", deleted: true }
    : { id: customer.id, object: "customer", livemode, name: "Saoirse Example", metadata: {} };
}

function lines(facts: InvoiceFacts, version: ApiVersion): JsonObject {
  const subscription = `sub_${suffix(facts)}`;
  const belongs =
    version < "2025-03-31"
      ? { type: "subscription", subscription, proration: false }
      : {
          parent: {
            invoice_item_details: null,
            subscription_item_details: { proration: false, subscription },
            type: "subscription_item_details",
          },
        };
  const line = {
    id: `il_${suffix(facts)}`,
    object: "line_item",
    amount: facts.total,
    currency: facts.currency,
    description: "1 × Harbour, monthly",
    livemode: facts.livemode,
    metadata: {},
    period: { end: facts.created, start: facts.created - 30 * 86_400 },
    quantity: 1,
    ...belongs,
  };
  return {
    object: "list",
    data: [line],
    has_more: false,
    total_count: 1,
    url: `/v1/invoices/${facts.id}/lines`,
  };
}

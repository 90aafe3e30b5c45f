/** Events as the inbox holds them when they wait for the cron: stored, due, never attempted. */
import { invoiceEvent } from "../local/events.ts";
import type { Client } from "pg";

/** What differs from one event to the next; no event has this character anywhere else. */
const NUMBER = "@";

export interface Waiting {
  readonly count: number;
  /** Told apart by it from other events of the same database. */
  readonly name: string;
}

/** An `invoice.paid` of Stripe's test mode, about as long as Stripe's are: 4 kB without blanks. */
export function paidEvent(id: string, amountPaid: number) {
  const event = shortEvent(id, amountPaid);
  const object = { ...event.data?.object, lines: linesOf(id, amountPaid), ...UNUSED };
  return { ...event, data: { object } };
}

const LINES = 3;

function linesOf(id: string, amount: number) {
  const data = Array.from({ length: LINES }, (_, line) => ({
    id: id.replace("evt", `il_${line}`),
    object: "line_item",
    amount: Math.round(amount / LINES),
    currency: "eur",
    description: `${line + 1} × Mooring, one month of harbour ${line}`,
    discount_amounts: [],
    discountable: true,
    discounts: [],
    livemode: false,
    metadata: { berth: `pier-${line}`, contract: id.replace("evt", "contract") },
    parent: {
      type: "subscription_item_details",
      subscription_item_details: {
        proration: false,
        subscription: id.replace("evt", "sub"),
        subscription_item: id.replace("evt", `si_${line}`),
      },
    },
    period: { end: 1_792_592_000, start: 1_790_000_000 },
    pricing: {
      type: "price_details",
      price_details: { price: `price_berth_${line}`, product: `prod_berth_${line}` },
      unit_amount_decimal: String(Math.round(amount / LINES)),
    },
    quantity: 1,
    taxes: [],
  }));
  return { object: "list", data, has_more: false, total_count: LINES };
}

/** Fields that an invoice has, and most leave empty. */
const UNUSED = {
  account_country: "IE",
  account_name: "Invented Harbours",
  account_tax_ids: null,
  application: null,
  automatic_tax: {
    disabled_reason: null,
    enabled: false,
    liability: null,
    provider: null,
    status: null,
  },
  custom_fields: null,
  customer_address: {
    city: "Kinsale",
    country: "IE",
    line1: "1 Pier Road",
    line2: null,
    postal_code: "P17",
    state: null,
  },
  customer_phone: null,
  customer_shipping: null,
  customer_tax_exempt: "none",
  customer_tax_ids: [],
  default_payment_method: null,
  default_source: null,
  default_tax_rates: [],
  discounts: [],
  ending_balance: 0,
  footer: null,
  from_invoice: null,
  hosted_invoice_url: "https://invoice.example.test/i/acct_invented/test_invented_and_rather_long",
  invoice_pdf: "https://pay.example.test/invoice/acct_invented/test_invented_and_rather_long/pdf",
  issuer: { type: "self" },
  last_finalization_error: null,
  latest_revision: null,
  next_payment_attempt: null,
  on_behalf_of: null,
  payment_settings: {
    default_mandate: null,
    payment_method_options: null,
    payment_method_types: null,
  },
  post_payment_credit_notes_amount: 0,
  pre_payment_credit_notes_amount: 0,
  receipt_number: null,
  rendering: null,
  shipping_cost: null,
  shipping_details: null,
  starting_balance: 0,
  statement_descriptor: null,
  status_transitions: {
    finalized_at: 1_790_000_000,
    marked_uncollectible_at: null,
    paid_at: 1_790_000_000,
    voided_at: null,
  },
  test_clock: null,
  total_discount_amounts: [],
  total_excluding_tax: 4_200,
  total_taxes: [],
  webhooks_delivered_at: null,
} as const;

function shortEvent(id: string, amountPaid: number) {
  const at = 1_790_000_000;
  return invoiceEvent(
    "invoice.paid",
    {
      id: id.replace("evt", "in"),
      status: "paid",
      customer: id.replace("evt", "cus"),
      currency: "eur",
      total: amountPaid,
      amountPaid,
      livemode: false,
      created: at,
      changed: at,
    },
    { id, apiVersion: "2026-10-28.endive" },
  );
}

/** Due a millisecond after one another, each about an invoice of its own. */
export async function fillWithWaiting(client: Client, { count, name }: Waiting): Promise<void> {
  const event = JSON.stringify(paidEvent(`evt_${name}_${NUMBER}`, AMOUNT));
  await client.query(
    `insert into webhook_inbox
       (endpoint, event_id, event_type, object_id, payload, received_at, available_at)
     select 'billing', payload->>'id', payload->>'type', payload#>>'{data,object,id}', payload,
       due, due
     from generate_series(1, $1::int) n
     cross join lateral (
       select replace($2::text, $3::text, lpad(n::text, 9, '0'))::jsonb as payload,
         now() - ($1::int - n) * interval '1 millisecond' as due) event`,
    [count, event, NUMBER],
  );
}

/** What each of them books, in minor units. */
export const AMOUNT = 4_200;

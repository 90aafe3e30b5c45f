/** Events about invoices in any shape, and all that the books say of one invoice. */
import type { StripeEvent } from "../local/events.ts";

/** The same event with these fields of its invoice replaced; undefined removes one. */
export function withFields(
  event: StripeEvent,
  fields: Readonly<Record<string, unknown>>,
): StripeEvent {
  return { ...event, data: { object: { ...event.data?.object, ...fields } } };
}

/** The event's JSON with one field of its invoice written exactly like this. */
export function withRawField(event: StripeEvent, field: string, json: string): string {
  const place = "the raw value goes here";
  return JSON.stringify(withFields(event, { [field]: place })).replace(`"${place}"`, json);
}

export interface InvoiceBooks {
  /** Without its times; `paid` says whether `paid_at` is set. */
  readonly invoice: {
    readonly status: string;
    readonly customer_id: string | null;
    readonly currency: string | null;
    readonly amount_paid: number;
    readonly paid: boolean;
  } | null;
  readonly entries: readonly {
    readonly amount: number;
    readonly currency: string | null;
    readonly event_id: string;
  }[];
  /** Payloads of the messages in the outbox. */
  readonly messages: readonly {
    readonly invoice_id: string;
    readonly amount: number;
    readonly currency: string | null;
    readonly customer_id: string | null;
    readonly event_id: string;
  }[];
  readonly discrepancies: readonly { readonly kind: string; readonly event_id: string | null }[];
}

type Rows = (statement: string, values?: unknown[]) => Promise<Record<string, unknown>[]>;

/** All that the books say of one invoice. Amounts are numbers, exact up to 2^53-1. */
export async function booksOf(inbox: { readonly rows: Rows }, id: string): Promise<InvoiceBooks> {
  const [books] = await inbox.rows(
    `select
      (select jsonb_build_object('status', status, 'customer_id', customer_id,
          'currency', currency, 'amount_paid', amount_paid, 'paid', paid_at is not null)
        from invoices where id = $1) as invoice,
      (select coalesce(jsonb_agg(jsonb_build_object('amount', amount, 'currency', currency,
          'event_id', event_id) order by id), '[]')
        from ledger_entries where invoice_id = $1) as entries,
      (select coalesce(jsonb_agg(payload order by id), '[]')
        from outbox where aggregate_id = $1) as messages,
      (select coalesce(jsonb_agg(jsonb_build_object('kind', kind, 'event_id', event_id)
          order by kind), '[]')
        from discrepancies where object_id = $1) as discrepancies`,
    [id],
  );
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- The statement above is its shape.
  return books as unknown as InvoiceBooks;
}

/** The invoice's row as it lies in the table, to compare it with itself later. */
export async function rowOf(
  inbox: { readonly rows: Rows },
  id: string,
): Promise<Record<string, unknown> | undefined> {
  const [row] = await inbox.rows("select * from invoices where id = $1", [id]);
  return row;
}

/** What became of an event: its outcome or the reason why it waits for a person. */
export async function recordOf(
  inbox: { readonly rows: Rows },
  eventId: string,
): Promise<Record<string, unknown> | undefined> {
  const [row] = await inbox.rows(
    `select outcome, parked_at is not null as parked, last_error
      from webhook_inbox where event_id = $1`,
    [eventId],
  );
  return row;
}

/**
 * What news of invoices make of the books, in one statement for any number of them: the lifecycle's
 * table, rendered into SQL.
 *
 * The parts of one statement share a snapshot, which does not show what others commit meanwhile. So
 * none of them reads a table: the upsert waits for the invoice's row and returns what it is now, and
 * the parts behind it decide by what was returned.
 */
import { type SQL, sql } from "drizzle-orm";
import type { RowStatement } from "../db/row-write.ts";
import { invoices, ledgerEntries } from "../db/schema.ts";
import { preparedTemplate } from "../db/template.ts";
import { enqueueFrom } from "../outbox/enqueue.ts";
import { openDiscrepanciesFrom } from "../reconcile/discrepancies.ts";
import { type Contradiction, CONTRADICTIONS, type InvoiceStatus, MOVES } from "./lifecycle.ts";

/** What one event tells of one invoice. Named as SQL names it. */
export interface Told {
  readonly id: string;
  readonly says: InvoiceStatus;
  readonly customer_id: string | null;
  readonly currency: string | null;
  /** Whole minor units that the event books; 0 books nothing, and null is no payment. */
  readonly payment: number | null;
  /** What is for a person to see, should this contradict what is known; null: nothing. */
  readonly disputes: Contradiction | null;
  readonly event_id: string;
}

/** As one array: a list of pairs takes Postgres longer to plan than all the rest. */
const isAmong = (words: SQL, lists: readonly (readonly string[])[]): SQL =>
  sql`${words} = any (${sql.raw(`'{${lists.map((list) => `"${list.join(" ")}"`).join()}}'`)})`;

/** By the row that is there, and the one that was to be inserted. */
const moves = isAmong(
  sql`${invoices.status} || ' ' || excluded.status`,
  MOVES.map(({ state, says }) => [state, says]),
);
const learnsAmount = sql`(${invoices.status} <> 'void' and ${invoices.amountPaid} = 0
  and excluded.amount_paid > 0)`;
const changes = sql`(${moves} or ${learnsAmount}
  or (${invoices.customerId} is null and excluded.customer_id is not null)
  or (${invoices.currency} is null and excluded.currency is not null))`;
/** Nothing is returned of a row that the upsert only locks. */
const isForThePartsBehind = sql`excluded.status in ('paid', 'void')`;

const contradicts = isAmong(
  sql`status || ' ' || says || ' ' || disputes`,
  CONTRADICTIONS.map(({ state, says, kind }) => [state, says, kind]),
);

/** A second payment is spoken of that is not the one booked; unknown currencies agree with any. */
const disagrees = (amount: SQL, currency: SQL): SQL =>
  sql`(booked.amount <> ${amount} or booked.currency <> ${currency})`;

export const booking: RowStatement<Told> = {
  keyOf: ({ id }) => id,
  write: (rows) => {
    const isOfMoney = rows.some(({ payment, disputes }) => payment !== null || disputes !== null);
    return (isOfMoney ? book : follow)({ rows: JSON.stringify(rows) });
  },
};

/** JSON text, and its place. */
interface Rows {
  readonly rows: string;
}

function newsIn(rows: unknown): SQL {
  return sql`jsonb_to_recordset(${rows}::text::jsonb) as news (id text, says text,
    customer_id text, currency text, payment bigint, disputes text, event_id text)`;
}

function upsert(news: SQL): SQL {
  return sql`
    insert into ${invoices} (id, customer_id, status, currency, amount_paid, paid_at)
    select id, customer_id, says, currency, coalesce(payment, 0),
      case when says = 'paid' then now() end
    from ${news}
    on conflict (id) do update set
      status = case when ${moves} then excluded.status else ${invoices.status} end,
      paid_at = case when ${moves} then excluded.paid_at else ${invoices.paidAt} end,
      customer_id = coalesce(${invoices.customerId}, excluded.customer_id),
      currency = coalesce(${invoices.currency}, excluded.currency),
      amount_paid = case when ${learnsAmount} then excluded.amount_paid
        else ${invoices.amountPaid} end,
      updated_at = case when ${changes} then now() else ${invoices.updatedAt} end
    where ${changes} or ${isForThePartsBehind}
    returning id, status, customer_id`;
}

const follow = preparedTemplate<Rows>(({ rows }) => upsert(newsIn(rows)));

const book = preparedTemplate<Rows>(
  ({ rows }) => sql`
    with news as materialized (select * from ${newsIn(rows)}), invoice as (${upsert(sql`news`)}),
    entry as (
      insert into ${ledgerEntries} as booked (invoice_id, kind, amount, currency, event_id)
      select id, 'payment', payment, news.currency, event_id
      from news join invoice using (id) where payment > 0 and status = 'paid'
      on conflict (invoice_id, kind) do update set kind = excluded.kind
      where ${disagrees(sql`excluded.amount`, sql`excluded.currency`)}
      returning invoice_id as id, amount, currency, event_id as booked_by
    ), told as (
      select news.*, status, invoice.customer_id as known_customer_id, amount,
        booked.currency as booked_currency, booked_by,
        ${disagrees(sql`payment`, sql`news.currency`)} as mismatch
      from news join invoice using (id) left join entry as booked using (id)
    ), message as (
      ${enqueueFrom(sql`told where booked_by is not null and mismatch is not true`, {
        aggregateType: "Invoice",
        aggregateId: sql`id`,
        eventType: "InvoicePaymentBooked",
        payload: sql`jsonb_build_object('invoice_id', id, 'amount', amount, 'currency', currency,
          'customer_id', known_customer_id, 'event_id', event_id)`,
      })}
    )
    ${openDiscrepanciesFrom(sql`
      select case when mismatch then 'payment_mismatch' else disputes end, id, event_id,
        case when mismatch
          then jsonb_build_object('booked_amount', amount, 'booked_currency', booked_currency,
            'booked_by', booked_by, 'amount', payment, 'currency', currency)
          else jsonb_build_object('status', status, 'event_says', says, 'amount', payment,
            'currency', currency)
        end
      from told where mismatch or ${contradicts}`)}`,
);

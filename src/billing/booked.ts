/** What is booked here of invoices, to be compared with what Stripe says. */
import { sql } from "drizzle-orm";
import type { Connection, Row } from "../db/connect.ts";
import { invoices, ledgerEntries } from "../db/schema.ts";
import { inOneFlight, type Timeouts } from "../db/transaction.ts";
import type { InvoiceHere } from "./comparison.ts";
import { isStatus } from "./lifecycle.ts";

export async function readInvoicesHere(
  db: Connection,
  ids: readonly string[],
  timeouts: Timeouts,
): Promise<ReadonlyMap<string, InvoiceHere>> {
  const read = sql`
    select ${invoices.id} as id, status, ${invoices.currency} as currency,
      amount_paid::float8 as amount_paid, extract(epoch from updated_at)::float8 as changed_at,
      amount::float8 as amount, ${ledgerEntries.currency} as booked_currency
    from ${invoices} left join ${ledgerEntries} on invoice_id = ${invoices.id} and kind = 'payment'
    where ${invoices.id} = any(${sql.param([...ids])}::text[])`;
  const [rows = []] = await inOneFlight(db, timeouts, [read]);
  return new Map(rows.map((row) => [String(row["id"]), toInvoice(row)]));
}

/**
 * The ids of invoices that changed since, or that may still change (what was missed of them, they
 * do not show), in their order: the next ones after `after`.
 */
export async function readIdsToCompare(
  db: Connection,
  since: Date,
  after: string,
  limit: number,
  timeouts: Timeouts,
): Promise<readonly string[]> {
  const read = sql`
    select id from ${invoices}
    where id > ${after} and (status in ('draft', 'open', 'uncollectible')
      or updated_at >= ${since.toISOString()}::timestamptz)
    order by id limit ${limit}::int`;
  const [rows = []] = await inOneFlight(db, timeouts, [read]);
  return rows.map((row) => String(row["id"]));
}

function toInvoice(row: Row): InvoiceHere {
  const { status, amount } = row;
  if (!isStatus(status)) throw new Error("Bug! The schema knows a status that the table does not.");
  return {
    id: String(row["id"]),
    status,
    currency: textOrNull(row["currency"]),
    amountPaid: Number(row["amount_paid"]),
    changedAt: Number(row["changed_at"]),
    entry:
      typeof amount === "number" ? { amount, currency: textOrNull(row["booked_currency"]) } : null,
  };
}

function textOrNull(value: unknown): string | null {
  return typeof value === "string" ? value : null;
}

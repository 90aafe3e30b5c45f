/** A control: what it does once, it does once for each event, though several tell of one payment. */
import { sql } from "drizzle-orm";
import { spoiledWorker } from "./spoiled.ts";

export default spoiledWorker((tx, eventId, { id, payment }) =>
  tx.execute(sql`insert into outbox (aggregate_type, aggregate_id, event_type, payload)
    select 'Invoice', invoice_id, 'InvoicePaymentBooked', jsonb_build_object(
      'invoice_id', invoice_id, 'amount', amount, 'currency', currency, 'event_id', event_id)
    from ledger_entries
    where invoice_id = ${id} and event_id <> ${eventId} and ${payment}::bigint is not null`),
);

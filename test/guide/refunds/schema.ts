/** The tables of refunds. Amounts are whole minor units, as Stripe sends them. */
import { sql } from "drizzle-orm";
import { bigint, check, pgTable, text, timestamp } from "drizzle-orm/pg-core";

const minorUnits = (name: string) => bigint(name, { mode: "number" }).notNull();

/** What was refunded of one charge so far: the most that any event has said. */
export const chargeRefunds = pgTable(
  "charge_refunds",
  {
    chargeId: text("charge_id").primaryKey(),
    customerId: text("customer_id"),
    currency: text("currency").notNull(),
    amount: minorUnits("amount"),
    /** The event that said so. */
    eventId: text("event_id").notNull(),
    updatedAt: timestamp("updated_at", { withTimezone: true }).notNull().defaultNow(),
  },
  (refund) => [
    check("charge_refunds_amount", sql`${refund.amount} between 1 and 9007199254740991`),
    check("charge_refunds_currency", sql`${refund.currency} ~ '^[a-z]{3}$'`),
  ],
);

/** One credit note, booked once for ever. */
export const creditNotes = pgTable(
  "credit_notes",
  {
    id: text("id").primaryKey(),
    invoiceId: text("invoice_id").notNull(),
    currency: text("currency").notNull(),
    amount: minorUnits("amount"),
    /** The part that the customer has back; the rest was never paid. */
    givenBack: minorUnits("given_back"),
    eventId: text("event_id").notNull(),
  },
  (note) => [
    check("credit_notes_amount", sql`${note.amount} between 0 and 9007199254740991`),
    check("credit_notes_given_back", sql`${note.givenBack} between 0 and ${note.amount}`),
    check("credit_notes_currency", sql`${note.currency} ~ '^[a-z]{3}$'`),
  ],
);

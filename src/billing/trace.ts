/** Where an event's traces are in the business, for a person who looks at it. */
import { type SQL, sql } from "drizzle-orm";
import type { Row, Write } from "../db/connect.ts";
import { numberOf, textOf, textOrNull, timeOf, timeOrNull } from "../db/rows.ts";
import {
  callJournal,
  discrepancies,
  invoices,
  ledgerEntries,
  outbox,
  webhookInbox as inbox,
} from "../db/schema.ts";
import { unsettled } from "../inbox/transitions.ts";

/** What is known of the object that an event speaks of, whichever event it came by. */
export interface Trace {
  readonly invoice: {
    readonly id: string;
    readonly customerId: string | null;
    readonly status: string;
    readonly currency: string | null;
    /** Minor units. */
    readonly amountPaid: number;
    readonly paidAt: Date | null;
    readonly updatedAt: Date;
  } | null;
  readonly ledgerEntries: readonly {
    readonly id: number;
    readonly kind: string;
    /** Minor units. */
    readonly amount: number;
    readonly currency: string | null;
    /** The event that booked it. */
    readonly eventId: string;
  }[];
  readonly messages: readonly {
    readonly id: number;
    readonly type: string;
    /** The event that it tells of. */
    readonly eventId: string | null;
    readonly createdAt: Date;
    readonly publishedAt: Date | null;
    readonly doneAt: Date | null;
    readonly parkedAt: Date | null;
    readonly attempts: number;
    readonly lastError: string | null;
    readonly calls: unknown;
  }[];
  readonly discrepancies: readonly {
    readonly id: number;
    readonly kind: string;
    readonly eventId: string | null;
    readonly detail: unknown;
    readonly foundAt: Date;
    readonly resolvedAt: Date | null;
    readonly resolution: string | null;
  }[];
}

/** A person looks at so many of each. */
const MOST = 100;

const KINDS = sql.join(
  discrepancies.kind.enumValues.map((kind) => sql`${kind}`),
  sql`, `,
);

/** @param objectId an expression: the id of the object that the event speaks of. */
export function traceStatements(objectId: SQL): readonly Write[] {
  return [
    sql`select * from ${invoices} where id = ${objectId}`,
    sql`select * from ${ledgerEntries} where invoice_id = ${objectId} order by id limit ${MOST}`,
    sql`select message.*, (
        select coalesce(jsonb_agg(jsonb_build_object('key', key, 'state', state,
          'attempts', attempts, 'first_called_at', first_called_at, 'done_at', done_at,
          'result', result, 'last_error', last_error)), '[]')
        from ${callJournal} where message_id = message.id) as calls
      from ${outbox} as message where aggregate_id = ${objectId} order by id limit ${MOST}`,
    // Its key begins with the kind.
    sql`select * from ${discrepancies} where kind in (${KINDS}) and object_id = ${objectId}
      order by id limit ${MOST}`,
  ];
}

export function readTrace([
  found = [],
  entries = [],
  messages = [],
  contradictions = [],
]: readonly (readonly Row[])[]): Trace {
  const [invoice] = found;
  return {
    invoice: invoice
      ? {
          id: textOf(invoice, "id"),
          customerId: textOrNull(invoice, "customer_id"),
          status: textOf(invoice, "status"),
          currency: textOrNull(invoice, "currency"),
          amountPaid: numberOf(invoice, "amount_paid"),
          paidAt: timeOrNull(invoice, "paid_at"),
          updatedAt: timeOf(invoice, "updated_at"),
        }
      : null,
    ledgerEntries: entries.map((row) => ({
      id: numberOf(row, "id"),
      kind: textOf(row, "kind"),
      amount: numberOf(row, "amount"),
      currency: textOrNull(row, "currency"),
      eventId: textOf(row, "event_id"),
    })),
    messages: messages.map((row) => ({
      id: numberOf(row, "id"),
      type: textOf(row, "event_type"),
      eventId: eventIdOf(row["payload"]),
      createdAt: timeOf(row, "created_at"),
      publishedAt: timeOrNull(row, "published_at"),
      doneAt: timeOrNull(row, "done_at"),
      parkedAt: timeOrNull(row, "parked_at"),
      attempts: numberOf(row, "attempts"),
      lastError: textOrNull(row, "last_error"),
      calls: row["calls"],
    })),
    discrepancies: contradictions.map((row) => ({
      id: numberOf(row, "id"),
      kind: textOf(row, "kind"),
      eventId: textOrNull(row, "event_id"),
      detail: row["detail"],
      foundAt: timeOf(row, "found_at"),
      resolvedAt: timeOrNull(row, "resolved_at"),
      resolution: textOrNull(row, "resolution"),
    })),
  };
}

function eventIdOf(payload: unknown): string | null {
  const named = typeof payload === "object" && payload !== null && "event_id" in payload;
  return named && typeof payload.event_id === "string" ? payload.event_id : null;
}

/** So many of those that wait, and did not fail, are looked through: their payloads must be read. */
const MOST_LOOKED_THROUGH = 2_000;

const customer = sql`left(coalesce(payload #>> '{data,object,customer,id}',
  payload #>> '{data,object,customer}'), 255)`;

/**
 * A customer, all of its invoices, and what its events speak of that need review, failed, or are
 * among those that have waited longest without a failure: of them no invoice may tell yet. As the
 * table `objects(object_id)` of a list of events.
 */
export function objectsOfCustomer(customerId: string): SQL {
  return sql`waiting as materialized (
      select object_id, ${customer} as customer from ${inbox}
      where ${unsettled} and last_error is null
      order by received_at limit ${MOST_LOOKED_THROUGH}::int
    ), objects(object_id) as (
      select ${customerId}::text
      union select id from ${invoices} where left(customer_id, 255) = ${customerId}
      union select object_id from ${inbox}
        where processed_at is null and last_error is not null and ${customer} = ${customerId}
          and object_id is not null
      union select object_id from waiting
        where customer = ${customerId} and object_id is not null)`;
}

/** The write that travels with the business writes: what the world is to hear of, once committed. */
import { type SQL, sql } from "drizzle-orm";
import { outbox } from "../db/schema.ts";

export interface Message {
  readonly aggregateType: string;
  readonly aggregateId: SQL;
  readonly eventType: string;
  /** A jsonb object. */
  readonly payload: SQL;
}

/**
 * One message for each row of `source`, a name in the surrounding statement: rows that were really
 * written there, and no others.
 */
export function enqueueFrom(source: SQL, message: Message): SQL {
  return sql`
    insert into ${outbox} (aggregate_type, aggregate_id, event_type, payload)
    select ${message.aggregateType}, ${message.aggregateId}, ${message.eventType}, ${message.payload}
    from ${source}`;
}

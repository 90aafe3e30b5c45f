/**
 * What a person must look at, opened once for each kind and object; opened again when, after it
 * was resolved, something else is found.
 */
import { type SQL, sql } from "drizzle-orm";
import type { Tx } from "../db/connect.ts";
import { discrepancies } from "../db/schema.ts";

export interface Finding {
  readonly kind: (typeof discrepancies.$inferInsert)["kind"];
  readonly objectId: string;
  readonly eventId: string;
  /** A jsonb object: what contradicts what, in ids, amounts and codes. */
  readonly detail: SQL;
  /** The rows that show it; a discrepancy is opened if there is one. */
  readonly evidence: SQL;
}

export function openDiscrepancy(tx: Tx, { kind, objectId, eventId, detail, evidence }: Finding) {
  return tx.execute(sql`
    insert into ${discrepancies} (kind, object_id, event_id, detail)
    select ${kind}::text, ${objectId}::text, ${eventId}::text, ${detail}
    ${evidence}
    on conflict (kind, object_id) do update set
      event_id = excluded.event_id, detail = excluded.detail, found_at = now(),
      resolved_at = null, resolution = null
    where ${discrepancies.resolvedAt} is not null
      and ${discrepancies.detail} is distinct from excluded.detail`);
}

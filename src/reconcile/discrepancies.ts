/** What a person must look at, opened once for each kind and object. */
import { type SQL, sql } from "drizzle-orm";
import type { Write } from "../db/connect.ts";
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

export function openDiscrepancy({ kind, objectId, eventId, detail, evidence }: Finding): Write {
  return sql`
    insert into ${discrepancies} (kind, object_id, event_id, detail)
    select ${kind}::text, ${objectId}::text, ${eventId}::text, ${detail}
    ${evidence}
    on conflict (kind, object_id) do nothing`;
}

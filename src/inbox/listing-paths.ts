/**
 * Which index leads to the events that an operator looks for. Pure: a filter in; partitions, each in
 * the order of time, and what is left to be filtered out.
 */
import { type SQL, sql } from "drizzle-orm";
import { webhookInbox as inbox } from "../db/schema.ts";
import { endpoints, parkedReasons, streams } from "./partitions.ts";
import { unsettled } from "./transitions.ts";

export type EventState = "waiting" | "needs_review" | "ignored" | "processed";

/** All that are given must hold. */
export interface EventFilter {
  /** `ignored`: only those whose payload is still there, and which could be requeued. */
  readonly state?: EventState | undefined;
  /** `last_error` of those that wait or need review; of those that are ignored, why. */
  readonly reason?: string | undefined;
  readonly endpoint?: string | undefined;
  readonly type?: string | undefined;
  /** Received from then on, and before. */
  readonly since?: Date | undefined;
  readonly until?: Date | undefined;
  readonly eventId?: string | undefined;
  readonly objectId?: string | undefined;
  /** For `with recursive`: a table `objects(object_id)` of all that belong to what is looked for. */
  readonly objects?: SQL | undefined;
}

/** Which partitions are merged, and what is left to be filtered. */
export interface Path {
  /** For `with recursive`. */
  readonly tables: SQL;
  /** The table of partitions. */
  readonly from: SQL;
  /** What makes a row of the inbox one of the partition `parts`; answered by an index. */
  readonly within: readonly SQL[];
  readonly parts: "many" | "only";
  /** About the rows `looked` at. */
  readonly rest: SQL[];
}

/** The way to what is looked for, by the index that holds the fewest other rows. */
export function pathOf(filter: EventFilter): Path {
  const { state, reason, endpoint, type, eventId, objectId, objects } = filter;
  const one = sql`one(nothing) as (select 1)`;
  const is = {
    state: state && [stateIs(state)],
    reason: reason === undefined ? [] : [reasonIs(reason)],
    endpoint: endpoint === undefined ? [] : [sql`looked.endpoint = ${endpoint}`],
    type: type === undefined ? [] : [sql`looked.event_type = ${type}`],
    objectId: objectId === undefined ? [] : [sql`looked.object_id = ${objectId}`],
    objects: objects ? [sql`looked.object_id in (select object_id from objects)`] : [],
  };
  const stateAndReason = [...(is.state ?? []), ...is.reason];
  if (eventId !== undefined) {
    return {
      tables: objects ? sql`${objects}, ${endpoints}` : endpoints,
      from: sql`endpoints`,
      within: [
        sql`${inbox.provider} = 'stripe'`,
        sql`${inbox.endpoint} = parts.endpoint`,
        sql`${inbox.eventId} = ${eventId}`,
      ],
      rest: [...stateAndReason, ...is.endpoint, ...is.type, ...is.objectId, ...is.objects],
      parts: "many",
    };
  }
  if (objectId !== undefined || objects) {
    const table = objects ?? sql`objects(object_id) as (select ${objectId ?? ""}::text)`;
    return {
      tables: table,
      from: sql`objects`,
      within: [sql`${inbox.objectId} = parts.object_id`],
      rest: [...stateAndReason, ...is.endpoint, ...is.type, ...(objects ? is.objectId : [])],
      parts: "many",
    };
  }
  const rest = [...is.endpoint, ...is.type];
  switch (state) {
    case "waiting":
      return {
        tables: one,
        from: sql`one`,
        within: [unsettled],
        parts: "only",
        rest: [...rest, ...is.reason],
      };
    case "needs_review":
      return {
        tables: parkedReasons,
        from: reason === undefined ? sql`reasons` : sql`(select ${reason}::text as reason)`,
        within: [sql`${inbox.parkedAt} is not null`, sql`${inbox.lastError} = parts.reason`],
        rest,
        parts: "many",
      };
    case "ignored":
      return {
        tables: one,
        from: sql`(select unnest(${textArray(reason === undefined ? inbox.ignoredReason.enumValues : [reason])}) as reason)`,
        within: [
          sql`${inbox.outcome} = 'ignored' and ${inbox.payload} is not null`,
          sql`${inbox.ignoredReason} = parts.reason`,
        ],
        rest,
        parts: "many",
      };
    case "processed":
    case undefined: {
      if (endpoint === undefined && type === undefined) {
        return {
          tables: one,
          from: sql`one`,
          within: [sql`${inbox.receivedAt} is not null`],
          rest: stateAndReason,
          parts: "only",
        };
      }
      const picked = [
        ...(endpoint === undefined ? [] : [sql`endpoint = ${endpoint}`]),
        ...(type === undefined ? [] : [sql`event_type = ${type}`]),
      ];
      return {
        tables: streams,
        from: sql`(select * from streams ${picked.length > 0 ? sql`where ${sql.join(picked, sql` and `)}` : sql``})`,
        within: [
          sql`${inbox.endpoint} = parts.endpoint`,
          sql`${inbox.eventType} = parts.event_type`,
        ],
        rest: stateAndReason,
        parts: "many",
      };
    }
  }
}

function stateIs(state: EventState): SQL {
  switch (state) {
    case "waiting":
      return sql`looked.processed_at is null and looked.parked_at is null`;
    case "needs_review":
      return sql`looked.parked_at is not null`;
    case "ignored":
      return sql`looked.outcome = 'ignored' and looked.has_payload`;
    case "processed":
      return sql`looked.outcome = 'processed'`;
  }
}

function reasonIs(reason: string): SQL {
  return sql`coalesce(looked.ignored_reason, looked.last_error) = ${reason}`;
}

function textArray(texts: readonly string[]): SQL {
  return sql`array[${sql.join(
    texts.map((text) => sql`${text}::text`),
    sql`, `,
  )}]`;
}

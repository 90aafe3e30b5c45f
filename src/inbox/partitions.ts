/**
 * The inbox in parts that an index keeps together and in the order of time: by endpoint and type, by
 * the reason for which events are parked. There are few of each, and the index is hopped through
 * from one to the next, instead of being read.
 * https://wiki.postgresql.org/wiki/Loose_indexscan
 */
import { type SQL, sql } from "drizzle-orm";
import { webhookInbox as inbox } from "../db/schema.ts";

/** For `with recursive`: every pair of `endpoint` and `event_type` there is. */
export const streams: SQL = sql`streams(endpoint, event_type) as (
  (select endpoint, event_type from ${inbox} order by endpoint, event_type limit 1)
  union all
  select next.endpoint, next.event_type from streams cross join lateral (
    select endpoint, event_type from ${inbox}
    where (${inbox.endpoint}, ${inbox.eventType}) > (streams.endpoint, streams.event_type)
    order by endpoint, event_type limit 1) as next)`;

/** For `with recursive`: every `reason` for which an event is parked. */
export const parkedReasons: SQL = sql`reasons(reason) as (
  (select last_error from ${inbox} where parked_at is not null order by last_error limit 1)
  union all
  select next.last_error from reasons cross join lateral (
    select last_error from ${inbox} where parked_at is not null and last_error > reasons.reason
    order by last_error limit 1) as next)`;

/** For `with recursive`: every `endpoint` there is. */
export const endpoints: SQL = sql`endpoints(endpoint) as (
  (select endpoint from ${inbox} order by endpoint limit 1)
  union all
  select next.endpoint from endpoints cross join lateral (
    select endpoint from ${inbox} where ${inbox.endpoint} > endpoints.endpoint
    order by endpoint limit 1) as next)`;

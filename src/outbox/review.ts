/**
 * What an operator may do with messages that could not be sent, with calls that need review, and
 * with messages that vanished on their way: have them sent again.
 *
 * Whether an `Uncertain` call has happened is for that person to find out, because a key that Stripe
 * has forgotten does not keep it from happening twice. Calls that were parked for another reason may
 * be uncertain too: they keep the time of their first attempt, and are parked as `Uncertain` if that
 * was too long ago.
 */
import { type SQL, sql } from "drizzle-orm";
import type { Connection, Write } from "../db/connect.ts";
import { type Count, exactly, numberOrNull, textOf, toCount } from "../db/rows.ts";
import { callJournal as journal, outbox } from "../db/schema.ts";
import { type Timeouts, inOneFlight, insideTransaction } from "../db/transaction.ts";
import { UNREADABLE } from "./journal.ts";

/**
 * One message by its id; all that are parked, or whose call is, for a reason; or all that left so
 * long ago and are not done, though nobody has parked them. `shown`: of them, only those that a person
 * has seen counted.
 */
export type MessageSelection = (
  | { readonly messageId: number }
  | { readonly reason: string }
  | { readonly leftHoursAgo: number }
) & { readonly shown?: ShownMessages | undefined };

/**
 * How far a person saw, when they agreed: what comes behind it, or left or was parked since, is not
 * meant. The time is the database's, to the microsecond.
 */
export interface ShownMessages {
  readonly at: string;
  readonly id: number;
}

/**
 * How many messages `resend` would take.
 *
 * @param most counting stops there.
 */
export async function countResendable(
  db: Connection,
  selection: MessageSelection,
  most: number,
  timeouts: Timeouts,
): Promise<Count> {
  const counting = sql`select count(*)::int as messages from (
    select from ${outbox} where ${resendable(selection)} limit ${most + 1}::int) as counted`;
  const [counted] = await inOneFlight(db, timeouts, [counting]);
  return toCount(counted?.[0]?.["messages"], most);
}

/** How many it would take, the oldest first, and how far they reach: what a person agrees to. */
export async function showResendable(
  db: Connection,
  selection: MessageSelection,
  most: number,
  timeouts: Timeouts,
): Promise<{ readonly messages: Count; readonly shown: ShownMessages | null }> {
  const [[row] = []] = await inOneFlight(db, timeouts, [
    sql`
    with counted as materialized (
      select id from ${outbox} where ${resendable(selection)} order by id limit ${most + 1}::int)
    select (select count(*)::int from counted) as messages, ${exactly(sql`now()`)} as at,
      (select max(id)::float8 from (
        select id from counted order by id limit ${most}::int) as shown) as id`,
  ]);
  const id = numberOrNull(row, "id");
  if (!row || id === null) return { messages: { count: 0, more: false }, shown: null };
  return { messages: toCount(row["messages"], most), shown: { at: textOf(row, "at"), id } };
}

/**
 * At most so many, the oldest first, as new: unsent, no attempts, due at once; and so are their
 * calls. A row for each message.
 */
export function resend(selection: MessageSelection, most: number): Write {
  return sql`
    with picked as materialized (
      select id from ${outbox} where ${resendable(selection)}
      order by id limit ${most}::int for update
    ), resent as (
      update ${outbox} set published_at = null, parked_at = null, attempts = 0, last_error = null,
        available_at = now(), fence = ${outbox.fence} + 1
      from picked where ${outbox.id} = picked.id and ${insideTransaction}
      returning ${outbox.id} as id
    ), freed as (
      update ${journal} set state = 'calling', parked_at = null, attempts = 0, last_error = null,
        first_called_at = case when ${journal.lastError} <> 'Uncertain' then first_called_at end,
        available_at = now(), fence = ${journal.fence} + 1
      from resent where ${journal.messageId} = resent.id and ${journal.state} <> 'done'
        and ${journal.lastError} <> ${UNREADABLE}
    ), forgotten as (
      delete from ${journal} using resent
      where ${journal.messageId} = resent.id and ${journal.state} = 'parked'
        and ${journal.lastError} = ${UNREADABLE}
    )
    select id from resent`;
}

function resendable({ shown, ...selection }: MessageSelection): SQL {
  const meant = sql`${outbox.doneAt} is null and ${selected(selection, shown)}`;
  if (!shown) return meant;
  return sql`${meant} and ${outbox.id} <= ${shown.id}::bigint
    and coalesce(${outbox.parkedAt}, ${outbox.publishedAt}) <= ${shown.at}::timestamptz
    and not ${callIs(sql`state = 'parked' and parked_at > ${shown.at}::timestamptz`)}`;
}

function selected(selection: MessageSelection, shown: ShownMessages | undefined): SQL {
  const left = sql`${outbox.publishedAt} is not null`;
  const underWay = callIs(sql`state = 'calling' and last_error is null and available_at > now()`);
  if ("messageId" in selection) {
    return sql`${outbox.id} = ${selection.messageId} and (${outbox.parkedAt} is not null or ${left})
      and not ${underWay}`;
  }
  if ("leftHoursAgo" in selection) {
    return sql`${left}
      and ${outbox.publishedAt} < now() - ${selection.leftHoursAgo}::int * interval '1 hour'
      and not ${callIs(sql`state = 'parked'`)} and not ${underWay}`;
  }
  // Each part has its own partial index; an `or` would have none.
  return sql`${outbox.id} in (
    select id from ${outbox} where parked_at is not null and last_error = ${selection.reason}
    union all
    select message_id from ${journal} where state = 'parked' and last_error = ${selection.reason}
      ${shown ? sql`and parked_at <= ${shown.at}::timestamptz` : sql``})`;
}

function callIs(which: SQL): SQL {
  return sql`exists (select from ${journal} as call
    where call.message_id = ${outbox.id} and (${which}))`;
}

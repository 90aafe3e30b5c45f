/**
 * What an operator may do with messages that could not be sent, and with calls that need review:
 * have them sent again. Whether an uncertain call has happened is for that person to find out: a
 * key that Stripe has forgotten does not keep it from happening twice.
 */
import { type SQL, sql } from "drizzle-orm";
import type { Connection } from "../db/connect.ts";
import { callJournal as journal, outbox } from "../db/schema.ts";
import { type Timeouts, inOneFlight, insideTransaction } from "../db/transaction.ts";

/** One message, by its id, or all that are parked, or whose call is, for a reason. */
export type MessageSelection = { readonly messageId: number } | { readonly reason: string };

export async function countResendable(
  db: Connection,
  selection: MessageSelection,
  timeouts: Timeouts,
): Promise<number> {
  const counting = sql`select count(*)::int as messages from ${outbox} where ${resendable(selection)}`;
  const [counted] = await inOneFlight(db, timeouts, [counting]);
  return Number(counted?.[0]?.["messages"]);
}

/** As new: unsent, no attempts, due at once; and so are their calls. Returns how many messages. */
export async function resend(
  db: Connection,
  selection: MessageSelection,
  timeouts: Timeouts,
): Promise<number> {
  const resending = sql`
    with resent as (
      update ${outbox} set published_at = null, parked_at = null, attempts = 0, last_error = null,
        available_at = now(), fence = ${outbox.fence} + 1
      where ${resendable(selection)} and ${insideTransaction}
      returning id
    ), freed as (
      update ${journal} set state = 'calling', parked_at = null, attempts = 0, last_error = null,
        first_called_at = null, available_at = now(), fence = ${journal.fence} + 1
      from resent where ${journal.messageId} = resent.id and ${journal.state} = 'parked'
    )
    select id from resent`;
  const [resent = []] = await inOneFlight(db, timeouts, [resending]);
  return resent.length;
}

function resendable(selection: MessageSelection): SQL {
  if ("messageId" in selection) {
    return sql`${outbox.id} = ${selection.messageId} and ${outbox.doneAt} is null
      and (${outbox.parkedAt} is not null or ${callIs(sql`true`)})`;
  }
  const { reason } = selection;
  return sql`${outbox.doneAt} is null and (
    (${outbox.parkedAt} is not null and ${outbox.lastError} = ${reason})
    or ${callIs(sql`${journal.lastError} = ${reason}`)})`;
}

function callIs(which: SQL): SQL {
  return sql`exists (select from ${journal}
    where ${journal.messageId} = ${outbox.id} and ${journal.state} = 'parked' and ${which})`;
}

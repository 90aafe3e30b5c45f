/** Rows as async mode, a crash or a recorded failure leave them, and what became of them. */
import type { StripeEvent } from "../local/events.ts";
import { anInvoiceEvent, type Testbed } from "./testbed.ts";

export interface Waiting {
  readonly event?: StripeEvent;
  readonly endpoint?: string;
  readonly attempts?: number;
  readonly lastError?: string | null;
  /** Seconds from now; in the past by default, so that the row is due. */
  readonly availableIn?: number;
}

/** Puts one row into the inbox that waits to be processed; returns its event. */
export async function waits(inbox: Pick<Testbed, "rows">, row: Waiting = {}): Promise<StripeEvent> {
  const event = row.event ?? anInvoiceEvent();
  await inbox.rows(
    `insert into webhook_inbox
      (endpoint, event_id, event_type, payload, attempts, last_error, available_at)
      values ($1, $2, $3, $4, $5, $6, now() + $7::float8 * interval '1 second')`,
    [
      row.endpoint ?? "billing",
      event.id,
      event.type,
      JSON.stringify(event),
      row.attempts ?? 0,
      row.lastError ?? null,
      row.availableIn ?? -1,
    ],
  );
  return event;
}

export async function manyWait(inbox: Testbed, count: number, row: Waiting = {}) {
  const events: StripeEvent[] = [];
  for (let n = 0; n < count; n++) events.push(await waits(inbox, row));
  return events;
}

/** How many rows are in each state. */
export async function states(inbox: Testbed): Promise<Record<string, number>> {
  const rows = await inbox.rows(`
    select case when processed_at is not null then outcome when parked_at is not null then 'parked'
      else 'waiting' end as state, count(*)::int as rows from webhook_inbox group by 1`);
  return Object.fromEntries(rows.map(({ state, rows: count }) => [state, Number(count)]));
}

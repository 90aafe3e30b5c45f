/** Whether what was answered is in the books: a rate of answers that were none is no rate. */
import { withClient } from "../bench.ts";
import { AMOUNT } from "../waiting-events.ts";
import type { Target } from "./load.ts";

/** @param effects false for a contestant that keeps the event and does nothing for it. */
export async function checkBooks(
  databaseUrl: string,
  { name, answered }: Target,
  effects: boolean,
): Promise<void> {
  const { rows } = await withClient(databaseUrl, (client) =>
    client.query<Record<string, number>>(
      `select
         (select count(*)::int from webhook_inbox where outcome = 'processed') as events,
         (select count(*)::int from invoices where status = 'paid' and amount_paid = $1) as invoices,
         (select count(*)::int from ledger_entries where amount = $1) as entries,
         (select count(*)::int from outbox) as messages`,
      [AMOUNT],
    ),
  );
  const done = effects ? answered : 0;
  const right = { events: answered, invoices: done, entries: done, messages: done };
  if (JSON.stringify(rows[0]) !== JSON.stringify(right)) {
    throw new Error(
      `${name}: the books say ${JSON.stringify(rows[0])} instead of ${JSON.stringify(right)}`,
    );
  }
}

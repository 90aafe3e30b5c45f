/**
 * The product's invoice handlers, each of which writes one row more. No key would keep that row
 * from being written twice, as the ledger's does for an entry: an event whose work is done twice
 * shows. And an event can say itself how its processing fails.
 */
import { sql } from "drizzle-orm";
import { invoiceHandlers } from "../../../src/billing/handlers.ts";
import {
  findHandler,
  type Handler,
  type HandlerTable,
  type ThinHandlerTable,
} from "../../../src/inbox/handler.ts";
import { PermanentError } from "../../../src/inbox/retry.ts";

/** The table of those rows; it is no table of the product's. */
export const EFFECTS_TABLE = "create table effects (event_id text not null)";

/** Written by an event's metadata: how its processing fails, until it does not. */
export type Failure =
  /**
   * At so many attempts, the handler throws, or returns a statement that Postgres refuses, or one
   * with a parameter that the driver refuses.
   */
  | { readonly how: "throw" | "statement" | "parameter"; readonly attempts: number }
  /** The same, without being asked: a statement that Postgres refuses at so many attempts. */
  | { readonly how: "write"; readonly attempts: number }
  | { readonly how: "permanent" };

const withEffect =
  (handler: Handler): Handler =>
  async (event, tx) => {
    const failure = failureOf(event.data.object);
    if (failure?.how === "permanent") throw new PermanentError("proof");
    const writes = (await handler(event, tx)) ?? [];
    const effect = tx.execute(sql`insert into effects (event_id) values (${event.id})`);
    if (failure === null) return [...writes, effect];
    if (failure.how === "write") {
      const refusing = sql`select 1 / (max(attempts) > ${failure.attempts})::int
        from webhook_inbox where event_id = ${event.id}`;
      return [...writes, effect, tx.execute(refusing)];
    }
    const { rows } = await tx.execute<{ attempts: number }>(
      sql`select max(attempts) as attempts from webhook_inbox where event_id = ${event.id}`,
    );
    if ((rows[0]?.attempts ?? 0) > failure.attempts) return [...writes, effect];
    if (failure.how === "throw") throw new TypeError("This attempt is to fail.");
    const refused = failure.how === "parameter" ? sql`select ${{ amount: 1n }}` : sql`select 1 / 0`;
    return [...writes, effect, tx.execute(refused)];
  };

function failureOf(object: object): Failure | null {
  const metadata: unknown = "metadata" in object ? object.metadata : null;
  if (typeof metadata !== "object" || metadata === null || !("proof" in metadata)) return null;
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- The proof's own events say it.
  return JSON.parse(String(metadata.proof)) as Failure;
}

export const handlersWithEffect: HandlerTable = Object.fromEntries(
  Object.keys(invoiceHandlers).flatMap((type) => {
    const handler = findHandler(invoiceHandlers, type);
    return handler ? [[type, withEffect(handler)]] : [];
  }),
);

/** Its effect is written only with what the notification names. */
export const thinHandlersWithEffect: ThinHandlerTable = {
  "v1.billing.meter.error_report_triggered": {
    fetch: "related_object",
    handle: (event, meter, tx) => {
      if (meter === null) throw new PermanentError("meter_unknown");
      return [tx.execute(sql`insert into effects (event_id) values (${event.id})`)];
    },
  },
};

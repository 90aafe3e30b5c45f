/**
 * The Worker as the proof runs it: everything is the product's own, handlers included, and each
 * handler writes one row more. No key would keep that row from being written twice, as the ledger's
 * does for an entry: an event whose work is done twice shows.
 */
import { sql } from "drizzle-orm";
import { createApp } from "../../../src/app.ts";
import { invoiceHandlers } from "../../../src/billing/handlers.ts";
import type { Env } from "../../../src/config.ts";
import { tick } from "../../../src/cron.ts";
import type { Endpoints } from "../../../src/endpoints.ts";
import { findHandler, type Handler, type HandlerTable } from "../../../src/inbox/handler.ts";
import { PermanentError } from "../../../src/inbox/retry.ts";
import { retain } from "../../../src/retain.ts";

/** Written by an event's metadata: how its processing fails, until it does not. */
export type Failure =
  /** The handler throws at so many attempts. */
  | { readonly how: "throw" | "statement"; readonly attempts: number }
  | { readonly how: "permanent" };

const withEffect =
  (handler: Handler): Handler =>
  async (event, tx) => {
    const failure = failureOf(event.data.object);
    if (failure?.how === "permanent") throw new PermanentError("proof");
    const writes = (await handler(event, tx)) ?? [];
    const effect = tx.execute(sql`insert into effects (event_id) values (${event.id})`);
    if (failure === null) return [...writes, effect];
    const { rows } = await tx.execute<{ attempts: number }>(
      sql`select max(attempts) as attempts from webhook_inbox where event_id = ${event.id}`,
    );
    if ((rows[0]?.attempts ?? 0) > failure.attempts) return [...writes, effect];
    if (failure.how === "throw") throw new TypeError("This attempt is to fail.");
    return [...writes, effect, tx.execute(sql`select 1 / 0`)];
  };

function failureOf(object: object): Failure | null {
  const metadata: unknown = "metadata" in object ? object.metadata : null;
  if (typeof metadata !== "object" || metadata === null || !("proof" in metadata)) return null;
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- The proof's own events say it.
  return JSON.parse(String(metadata.proof)) as Failure;
}

const handlers: HandlerTable = Object.fromEntries(
  Object.keys(invoiceHandlers).flatMap((type) => {
    const handler = findHandler(invoiceHandlers, type);
    return handler ? [[type, withEffect(handler)]] : [];
  }),
);

const endpoints: Endpoints = {
  billing: { secrets: "STRIPE_WEBHOOK_SECRET", accounts: "own", mode: "sync", handlers },
  /** The same, answered when it is stored. */
  later: { secrets: "STRIPE_WEBHOOK_SECRET", accounts: "own", mode: "async", handlers },
  connect: { secrets: "STRIPE_CONNECT_WEBHOOK_SECRET", accounts: "connected", handlers: {} },
};

interface Context {
  readonly waitUntil: (rest: Promise<unknown>) => void;
}

/** The cron of retention, as the proof names it. */
const NIGHT = "night";

export default {
  fetch: createApp(endpoints).fetch,
  scheduled: async ({ cron }: { cron: string }, env: Env, ctx: Context): Promise<void> => {
    const afterwards = (rest: Promise<unknown>): void => ctx.waitUntil(rest);
    await (cron === NIGHT ? retain(env, afterwards) : tick(endpoints, env, afterwards));
  },
};

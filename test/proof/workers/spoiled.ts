/**
 * A receiver that does what the product does, and something wrong behind it in the same
 * transaction: a control, which the proof must find.
 */
import { createApp } from "../../../src/app.ts";
import { type InvoiceNews, readInvoice } from "../../../src/billing/invoice.ts";
import { INVOICE_EVENTS, type InvoiceEventType } from "../../../src/billing/lifecycle.ts";
import type { Env } from "../../../src/config.ts";
import { tick } from "../../../src/cron.ts";
import type { Tx, Write } from "../../../src/db/connect.ts";
import type { Endpoints } from "../../../src/endpoints.ts";
import { findHandler, type Handler, type HandlerTable } from "../../../src/inbox/handler.ts";
import { handlersWithEffect } from "./effect.ts";

/** What is wrong with it, where an event speaks of an invoice's state. */
export type Spoil = (tx: Tx, eventId: string, invoice: InvoiceNews) => Write;

interface Context {
  readonly waitUntil: (rest: Promise<unknown>) => void;
}

export function spoiledWorker(spoil: Spoil) {
  const spoiled =
    (type: InvoiceEventType, handler: Handler): Handler =>
    async (event, tx) => {
      const writes = (await handler(event, tx)) ?? [];
      return [...writes, spoil(tx, event.id, readInvoice(type, event.data.object))];
    };
  const handlers: HandlerTable = Object.fromEntries(
    Object.keys(handlersWithEffect).flatMap((type) => {
      const handler = findHandler(handlersWithEffect, type);
      return handler ? [[type, tellsOfState(type) ? spoiled(type, handler) : handler]] : [];
    }),
  );
  const endpoints: Endpoints = {
    billing: { secrets: "STRIPE_WEBHOOK_SECRET", accounts: "own", mode: "sync", handlers },
    later: { secrets: "STRIPE_WEBHOOK_SECRET", accounts: "own", mode: "async", handlers },
    connect: { secrets: "STRIPE_CONNECT_WEBHOOK_SECRET", accounts: "connected", handlers: {} },
  };
  return {
    fetch: createApp(endpoints).fetch,
    scheduled: async (_: unknown, env: Env, ctx: Context): Promise<void> => {
      await tick(endpoints, env, (rest) => ctx.waitUntil(rest));
    },
  };
}

function tellsOfState(type: string): type is InvoiceEventType {
  return Object.hasOwn(INVOICE_EVENTS, type);
}

/**
 * The Worker as the proof runs it: everything is the product's own, handlers included, and each
 * handler writes one row more, so that an event whose work is done twice shows.
 */
import { createApp } from "../../../src/app.ts";
import type { Env } from "../../../src/config.ts";
import { tick } from "../../../src/cron.ts";
import { consequences, type Endpoints } from "../../../src/endpoints.ts";
import { type Batch, consumeBatch } from "../../../src/queue.ts";
import { retain } from "../../../src/retain.ts";
import { handlersWithEffect, thinHandlersWithEffect } from "./effect.ts";
import { withQueue } from "./to-queue.ts";

export type { Failure } from "./effect.ts";

export const endpoints: Endpoints = {
  billing: {
    secrets: "STRIPE_WEBHOOK_SECRET",
    accounts: "own",
    mode: "sync",
    handlers: handlersWithEffect,
  },
  /** The same, answered when it is stored. */
  later: {
    secrets: "STRIPE_WEBHOOK_SECRET",
    accounts: "own",
    mode: "async",
    handlers: handlersWithEffect,
    thinHandlers: thinHandlersWithEffect,
  },
  connect: { secrets: "STRIPE_CONNECT_WEBHOOK_SECRET", accounts: "connected", handlers: {} },
};

const app = createApp(endpoints);

export interface Context {
  readonly waitUntil: (rest: Promise<unknown>) => void;
}

/** The cron of retention, as the proof names it. */
const NIGHT = "night";

export default {
  fetch: (request: Request, env: Env, ctx: Parameters<typeof app.fetch>[2]) =>
    app.fetch(request, withQueue(env), ctx),
  scheduled: async ({ cron }: { cron: string }, env: Env, ctx: Context): Promise<void> => {
    const afterwards = (rest: Promise<unknown>): void => ctx.waitUntil(rest);
    await (cron === NIGHT ? retain(env, afterwards) : tick(endpoints, withQueue(env), afterwards));
  },
  queue: (batch: Batch, env: Env, ctx: Context): Promise<void> =>
    consumeBatch(consequences, batch, env, (rest) => ctx.waitUntil(rest)),
};

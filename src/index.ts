/** The Worker. Wires; decides nothing. */
import { createApp } from "./app.ts";
import type { Env } from "./config.ts";
import { tick } from "./cron.ts";
import { endpoints } from "./endpoints.ts";
import { type Batch, consumeBatch } from "./queue.ts";
import { retain } from "./retain.ts";

type Context = Pick<ExecutionContext, "waitUntil">;

/** As in `wrangler.toml`; every other schedule is a tick. */
const RETENTION_CRON = "17 3 * * *";

export default {
  fetch: createApp(endpoints).fetch,
  scheduled: async ({ cron }: { cron: string }, env: Env, ctx: Context) => {
    const afterwards = (rest: Promise<unknown>): void => ctx.waitUntil(rest);
    await (cron === RETENTION_CRON ? retain(env, afterwards) : tick(endpoints, env, afterwards));
  },
  queue: (batch: Batch, env: Env, ctx: Context) =>
    consumeBatch(batch, env, (rest) => ctx.waitUntil(rest)),
} satisfies ExportedHandler<Env>;

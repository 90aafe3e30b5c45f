/** The Worker. Wires; decides nothing. */
import { createApp } from "./app.ts";
import type { Env } from "./config.ts";
import { consequences, endpoints } from "./endpoints.ts";
import { type Batch, consumeBatch } from "./queue.ts";
import { runSchedule } from "./schedule.ts";

type Context = Pick<ExecutionContext, "waitUntil">;

export default {
  fetch: createApp(endpoints).fetch,
  scheduled: ({ cron }: { cron: string }, env: Env, ctx: Context) =>
    runSchedule(cron, endpoints, env, (rest) => ctx.waitUntil(rest)),
  queue: (batch: Batch, env: Env, ctx: Context) =>
    consumeBatch(consequences, batch, env, (rest) => ctx.waitUntil(rest)),
} satisfies ExportedHandler<Env>;

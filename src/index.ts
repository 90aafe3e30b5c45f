/** The Worker. Wires; decides nothing. */
import { createApp } from "./app.ts";
import type { Env } from "./config.ts";
import { tick } from "./cron.ts";
import { endpoints } from "./endpoints.ts";

export default {
  fetch: createApp(endpoints).fetch,
  scheduled: async (_controller, env, ctx) => {
    await tick(endpoints, env, (rest) => ctx.waitUntil(rest));
  },
} satisfies ExportedHandler<Env>;

/** Which run a schedule of `wrangler.toml` stands for, and what goes on around it. */
import type { Env } from "./config.ts";
import { tick } from "./cron.ts";
import type { Endpoints } from "./endpoints.ts";
import { retain } from "./retain.ts";
import { countHours, tellAlerts, withHeartbeat } from "./watching.ts";

/** As in `wrangler.toml`; every other schedule is a tick. */
const RETENTION_CRON = "17 3 * * *";

export function runSchedule(
  cron: string,
  endpoints: Endpoints,
  env: Env,
  afterwards: (rest: Promise<unknown>) => void,
): Promise<void> {
  if (cron === RETENTION_CRON) {
    return withHeartbeat("retention", env, afterwards, () => retain(env, afterwards));
  }
  const chores = [tellAlerts(endpoints, env), countHours];
  return withHeartbeat("tick", env, afterwards, () => tick(endpoints, env, afterwards), chores);
}

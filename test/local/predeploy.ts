/** Before `npm run deploy`: refuses a wrangler.toml that would be deployed, and then reach no database. */
import { join } from "node:path";
import { unstable_readConfig as readConfig } from "wrangler";
import { ROOT } from "./run-file.ts";
import { whyUnreachable } from "./wrangler-config.ts";

const config = readConfig({ config: join(ROOT, "wrangler.toml") }, { hideWarnings: true });
const why = whyUnreachable(config);
if (why !== null) {
  console.error(why);
  process.exitCode = 1;
}

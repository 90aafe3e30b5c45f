/** Before `npm run deploy`: refuses a wrangler.toml that would be deployed, and then reach no database. */
import { join } from "node:path";
import { unstable_readConfig as readConfig } from "wrangler";
import { ROOT } from "./run-file.ts";

const { hyperdrive, alias } = readConfig(
  { config: join(ROOT, "wrangler.toml") },
  { hideWarnings: true },
);
if (hyperdrive.length === 0 && alias?.["@neondatabase/serverless"] !== undefined) {
  console.error(
    "wrangler.toml has no [[hyperdrive]], and its [alias] leaves Neon's driver out: take that out as well.",
  );
  process.exitCode = 1;
}

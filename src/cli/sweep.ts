/**
 * `npm run sweep`: asks for Stripe's list of events to be swept from a given day on, as when an
 * endpoint turns out to have been misrouted. The Worker walks it, from its next tick on. Works
 * against any database that DATABASE_URL names, a deployed one too.
 */
import { parseArgs } from "node:util";
import { connect } from "../db/connect.ts";
import { explain } from "../faults.ts";
import { requestSweep } from "../reconcile/sweep.ts";
import { OWN_ACCOUNT } from "../reconcile/sweep-runs.ts";

const HELP = `Has Stripe's list of events swept again, by the next ticks of the Worker.

  npm run sweep -- --since 2026-11-01     from that day on (Stripe lists the last 30 days)
  --account acct_…                        of a connected account [the API key's own]

DATABASE_URL names the database. The Worker needs STRIPE_API_KEY, and SWEEP_INTERVAL_MINUTES
above 0; what it finds missing is processed as if it had been delivered.`;

const TIMEOUTS = { lockTimeoutMs: 10_000, statementTimeoutMs: 30_000 };

class Usage extends Error {}

function parseFlags(args: string[]): { since: Date; account: string } | null {
  const { values } = parseArgs({
    args,
    options: {
      since: { type: "string" },
      account: { type: "string", default: OWN_ACCOUNT },
      help: { type: "boolean", short: "h", default: false },
    },
  });
  if (values.help) return null;
  const since = new Date(/^\d{4}-\d{2}-\d{2}$/.test(values.since ?? "") ? `${values.since}` : "");
  if (Number.isNaN(since.getTime())) throw new Usage("--since says from which day on: 2026-11-01.");
  if (values.account !== OWN_ACCOUNT && !/^acct_\w{1,64}$/.test(values.account)) {
    throw new Usage("--account must be the id of a connected account, acct_…");
  }
  return { since, account: values.account };
}

async function main(args: string[]): Promise<void> {
  const flags = parseFlags(args);
  if (!flags) return console.log(HELP);
  const connectionString = process.env["DATABASE_URL"];
  if (!connectionString) throw new Usage("DATABASE_URL says which database; it is not set.");
  const db = await connect({ connectionString, pipeline: true }, new AbortController().signal);
  try {
    const { account, since } = flags;
    if (!(await requestSweep(db, account, since, TIMEOUTS))) {
      throw new Usage("--since: there is nothing to sweep yet from that day on.");
    }
    console.log("The next tick of the Worker begins to sweep.");
  } finally {
    await db.close();
  }
}

try {
  await main(process.argv.slice(2));
} catch (error) {
  const usage = error instanceof Usage || (error instanceof TypeError && "code" in error);
  console.error(usage ? `${error.message}\n\n${HELP}` : explain(error));
  process.exitCode = 1;
}

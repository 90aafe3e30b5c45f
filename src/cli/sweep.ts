/**
 * `npm run sweep`: asks for Stripe's list of events to be swept from a given day on, as when an
 * endpoint turns out to have been misrouted. The Worker walks it, from its next tick on. Works
 * against any database that DATABASE_URL names, a deployed one too.
 */
import { parseArgs } from "node:util";
import { requestSweep } from "../reconcile/sweep.ts";
import { OWN_ACCOUNT } from "../reconcile/sweep-runs.ts";
import { complain, readSince, Usage, withDatabase } from "./command.ts";

const HELP = `Has Stripe's list of events swept again, by the next ticks of the Worker.

  npm run sweep -- --since 2026-11-01     from that day on (Stripe lists the last 30 days)
  npm run sweep -- --since 7d             of the last seven days
  --account acct_…                        of a connected account [the API key's own]

DATABASE_URL names the database. The Worker needs STRIPE_API_KEY, and SWEEP_INTERVAL_MINUTES
above 0; what it finds missing is processed as if it had been delivered.`;

const TIMEOUTS = { lockTimeoutMs: 10_000, statementTimeoutMs: 30_000 };

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
  if (values.account !== OWN_ACCOUNT && !/^acct_\w{1,64}$/.test(values.account)) {
    throw new Usage("--account must be the id of a connected account, acct_…");
  }
  return { since: readSince(values.since), account: values.account };
}

async function main(args: string[]): Promise<void> {
  const flags = parseFlags(args);
  if (!flags) return console.log(HELP);
  const { account, since } = flags;
  const requested = await withDatabase((db) => requestSweep(db, account, since, TIMEOUTS));
  if (requested === "nothing to sweep yet") {
    throw new Usage("--since: there is nothing to sweep yet from then on.");
  }
  if (requested === "unknown account") {
    throw new Usage(`--account: ${account} was never swept: is it in STRIPE_CONNECTED_ACCOUNTS?`);
  }
  console.log(
    account === OWN_ACCOUNT
      ? "The next tick of the Worker begins to sweep, if STRIPE_API_KEY is set there."
      : `The next tick of the Worker begins to sweep, if ${account} is among its STRIPE_CONNECTED_ACCOUNTS.`,
  );
}

try {
  await main(process.argv.slice(2));
} catch (error) {
  complain(error, HELP);
  process.exitCode = 1;
}

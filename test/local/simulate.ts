/** `npm run simulate`: a simulated Stripe posts to a receiver that is already running. */
import { statSync } from "node:fs";
import { parseArgs } from "node:util";
import { type NumberFlag, UsageError, readNumber } from "./flags.ts";
import { postFolder } from "./folder.ts";
import { progressOn, roundTable } from "./report.ts";
import { endpointUrl, playRound } from "./round.ts";
import { findReceiver } from "./run-file.ts";
import { accountOf, localSettings } from "./settings.ts";

const HELP = `Posts signed Stripe events to a running receiver and audits its books.

  npm run simulate                     to what "npm start" or "npm run dev" serves
  npm run simulate -- --from DIR       each JSON file of a folder as an event, once

  --url URL            the receiver [the running one, else http://127.0.0.1:8787]
  --secret SECRET      signing secret of /webhooks/stripe/billing, or of --endpoint
  --connect-secret S   signing secret of /webhooks/stripe/connect
  --seed N             repeats a stream [random]
  --invoices N         length of the stream [200]
  --concurrency N      deliveries at a time [16]
  --duplicates PCT     events delivered twice [15]
  --drop PCT           deliveries that never come, for a sweep to find, where "npm start" or
                       "npm run dev" brings the Stripe API that it asks [10]
  --from DIR           post files instead of a stream
  --endpoint NAME      which endpoint they are posted to [billing]
  --help               this

The books are read from DATABASE_URL, else from the database of the running receiver, as soon as
every event is processed; what is left over and due, the receiver's cron is called for.
Exit status 0 when the books agree (with --from: when every answer is a 2xx), else 1.`;

const FLAGS = {
  url: { type: "string" },
  secret: { type: "string" },
  "connect-secret": { type: "string" },
  seed: { type: "string" },
  invoices: { type: "string" },
  concurrency: { type: "string" },
  duplicates: { type: "string" },
  drop: { type: "string" },
  from: { type: "string" },
  endpoint: { type: "string" },
  help: { type: "boolean", short: "h" },
} as const;

const ONLY_OF_A_STREAM = ["seed", "invoices", "concurrency", "duplicates", "drop"] as const;
const SEED: NumberFlag = { name: "seed", min: 0, max: 2 ** 32 - 1 };
const INVOICES: NumberFlag = { name: "invoices", min: 1, max: 100_000 };
const CONCURRENCY: NumberFlag = { name: "concurrency", min: 1, max: 500 };
const DUPLICATES: NumberFlag = { name: "duplicates", min: 0, max: 100 };
const DROP: NumberFlag = { name: "drop", min: 0, max: 100 };

async function main(args: string[]): Promise<boolean> {
  const flags = parseFlags(args);
  if (flags.help) {
    console.log(HELP);
    return true;
  }
  const options = {
    seed: readNumber(SEED, flags.seed) ?? Math.floor(Math.random() * 2 ** 32),
    invoices: readNumber(INVOICES, flags.invoices) ?? 200,
    concurrency: readNumber(CONCURRENCY, flags.concurrency) ?? 16,
    duplicatesPercent: readNumber(DUPLICATES, flags.duplicates) ?? 15,
    dropsPercent: readNumber(DROP, flags.drop) ?? 10,
  };

  const running = findReceiver();
  const account = running ?? accountOf(localSettings());
  const url = readUrl(flags.url ?? running?.url ?? "http://127.0.0.1:8787");
  const receiver = {
    url,
    livemode: account.livemode,
    // Another receiver's calls go to an API that is not ours to ask.
    apiUrl: flags.url === undefined ? (running?.apiUrl ?? null) : null,
    sweeps: running?.sweeps ?? false,
    secrets: {
      billing: flags.secret ?? account.secrets.billing,
      connect: flags["connect-secret"] ?? account.secrets.connect,
    },
  };
  await mustAnswer(url);

  if (flags.from !== undefined) {
    if (!statSync(flags.from, { throwIfNoEntry: false })?.isDirectory()) {
      throw new UsageError(`--from: ${flags.from} is not a folder`);
    }
    const other = ONLY_OF_A_STREAM.find((flag) => flags[flag] !== undefined);
    if (other !== undefined) throw new UsageError(`--${other} does not go with --from`);
    const name = flags.endpoint ?? "billing";
    const known = new Map<string, string>(Object.entries(receiver.secrets));
    const secret = flags.secret ?? known.get(name);
    if (secret === undefined) {
      throw new UsageError(`--endpoint: say what signs for ${name}, with --secret`);
    }
    return postFolder(flags.from, { url: endpointUrl(url, name), secret }, console.log);
  }

  if (flags.endpoint !== undefined) throw new UsageError("--endpoint goes with --from");
  const databaseUrl = process.env["DATABASE_URL"] ?? running?.databaseUrl;
  if (databaseUrl === undefined) {
    throw new UsageError(
      "Set DATABASE_URL to the receiver's database: its books are to be audited",
    );
  }
  console.log(`A simulated Stripe posts to ${url} (seed ${options.seed}).`);
  const progress = progressOn(process.stdout);
  const round = await playRound(
    { ...receiver, databaseUrl },
    { ...options, cuts: 0, onProgress: progress.onProgress, onWait: progress.onWait },
  ).finally(progress.clear);
  console.log(roundTable(round));
  return round.problems.length === 0;
}

function parseFlags(args: string[]) {
  try {
    return parseArgs({ args, options: FLAGS }).values;
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error));
  }
}

function readUrl(text: string): string {
  const url = URL.parse(text);
  if (!url || !/^https?:$/.test(url.protocol)) {
    throw new UsageError(`--url: ${text} is not an http or https URL`);
  }
  return `${url.origin}${url.pathname}`.replace(/\/+$/, "");
}

async function mustAnswer(url: string): Promise<void> {
  let answered: number;
  try {
    const response = await fetch(`${url}/healthz`, { signal: AbortSignal.timeout(10_000) });
    await response.body?.cancel();
    answered = response.status;
  } catch {
    throw new UsageError(`Nothing answers at ${url}. Start it first, with: npm run dev`);
  }
  if (answered !== 404) return;
  throw new UsageError(
    `There is no receiver: ${url}/healthz is answered with 404. --url is what comes before it.`,
  );
}

try {
  process.exitCode = (await main(process.argv.slice(2))) ? 0 : 1;
} catch (error) {
  const usage = error instanceof UsageError;
  console.error(usage ? `${error.message}\nSee: npm run simulate -- --help` : error);
  process.exitCode = 1;
}

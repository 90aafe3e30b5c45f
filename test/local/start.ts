/**
 * `npm start` and `npm run dev`: the whole system on this machine, with a simulated Stripe or
 * without, until Ctrl-C; nothing is left running then.
 */
import { setTimeout as pause } from "node:timers/promises";
import { parseArgs } from "node:util";
import { InvalidSetting, readSecrets, readSettings } from "../../src/config.ts";
import { tickEveryMinute, tickUrl } from "./cron.ts";
import { UsageError } from "./flags.ts";
import { interruption } from "./interruption.ts";
import { progressOn, roundTable } from "./report.ts";
import { type RoundOptions, playRound } from "./round.ts";
import { AlreadyRunning } from "./run-file.ts";
import { localSettings, MADE_UP_OPS_TOKEN, whyDangerous, withShortLease } from "./settings.ts";
import { type System, startSystem, withoutPassword } from "./system.ts";
import { followWorkerLog } from "./worker-log.ts";

const HELP = `Starts Postgres and the Worker on this machine.

  npm start               and lets a simulated Stripe post to it, until Ctrl-C
  npm start -- --once     one round of it; exit status 0 when the books agree, else 1
  npm run dev             without traffic

  -- --mode async         answers when an event is stored, and processes it behind the answer
  -- --mode sync          answers when it is processed [RECEIVE_MODE, else sync]

The cron ticks every minute, and when a round finds that something was left over. With traffic, a
lease lasts 5 s instead of 120, unless LEASE_SECONDS or a timeout of the ticks is set.

From the environment, or .dev.vars: PORT [8787], DATABASE_URL (a Postgres of your own instead of the
embedded one; on another machine only with -- --database-is-for-tests), STRIPE_WEBHOOK_SECRET and every
other setting of the Worker.`;

const FLAGS = {
  once: { type: "boolean" },
  mode: { type: "string" },
  "no-traffic": { type: "boolean" },
  "database-is-for-tests": { type: "boolean" },
  help: { type: "boolean", short: "h" },
} as const;

const ROUND = { invoices: 150, concurrency: 16, duplicatesPercent: 15, dropsPercent: 10 } as const;
const CUTS = 5;
const TRICKLE: RoundOptions = {
  seed: 0,
  invoices: 3,
  concurrency: 4,
  duplicatesPercent: 15,
  dropsPercent: 0,
  cuts: 0,
};
const TRICKLE_PAUSE_MS = 4_000;
const TRICKLE_REPORT_MS = 60_000;

type Settings = Readonly<Record<string, string>>;

const say = (line: string) => console.log(line);

async function main(args: string[], signal: AbortSignal): Promise<boolean> {
  const flags = parseFlags(args);
  if (flags.help) {
    say(HELP);
    return true;
  }
  const settings = settingsWith(flags.mode);
  const isForTests = flags["database-is-for-tests"] ?? false;
  const why = whyDangerous(process.env["DATABASE_URL"], settings, isForTests);
  if (why !== null) throw new UsageError(why);
  mustBeValid(settings);
  if (settings["PROCESSING"] === "paused" && !flags["no-traffic"]) {
    throw new UsageError(
      "PROCESSING=paused books nothing that could be audited: npm run dev serves it.",
    );
  }
  const system = await startSystem({
    settings: flags["no-traffic"] ? settings : withShortLease(settings),
    signal,
    say,
  });
  const end = new AbortController();
  const untilEnd = AbortSignal.any([signal, end.signal]);
  const ticking = tickEveryMinute(system.receiver.url, { say, signal: untilEnd });
  try {
    const working = flags["no-traffic"]
      ? serveAlone(system, settings, untilEnd)
      : serveTraffic(system, settings, flags.once ?? false, untilEnd);
    const failure = system.broken.then((what) => {
      signal.throwIfAborted();
      throw new UsageError(what);
    });
    return await Promise.race([working, failure]);
  } finally {
    end.abort();
    await ticking;
    say("Ending the Worker and Postgres.");
    await system.stop();
  }
}

async function serveTraffic(
  system: System,
  settings: Settings,
  once: boolean,
  signal: AbortSignal,
): Promise<boolean> {
  const seed = Math.floor(Math.random() * 2 ** 32);
  say("");
  say(`A simulated Stripe posts the histories of ${ROUND.invoices} invoices (seed ${seed}),`);
  say(
    system.ownsDatabase
      ? "some events twice, not in their order, while database connections are cut."
      : "some events twice and not in their order.",
  );
  say("");
  const progress = progressOn(process.stdout);
  const cuts = system.ownsDatabase ? CUTS : 0;
  const { onProgress, onWait } = progress;
  const options = { ...ROUND, seed, cuts, signal, onProgress, onWait };
  const round = await playRound(system.receiver, options).finally(progress.clear);
  say(roundTable(round));
  say("");
  if (once) return round.problems.length === 0;
  sayWhere(system, settings);
  say("Every few seconds a few more invoices. Ctrl-C ends it.");
  return trickle(system, signal);
}

async function serveAlone(system: System, settings: Settings, signal: AbortSignal): Promise<never> {
  sayWhere(system, settings);
  say("Send it events with: npm run simulate. Ctrl-C ends it. From here on, the Worker's log:");
  say("");
  return followWorkerLog(Object.values(system.receiver.secrets), signal);
}

/** A few invoices at a time, audited at once; a line a minute, or as soon as the books disagree. */
async function trickle({ receiver }: System, signal: AbortSignal): Promise<never> {
  let sum = { invoices: 0, deliveries: 0, entries: 0, byCron: 0 };
  let reportAt = Date.now() + TRICKLE_REPORT_MS;
  for (;;) {
    await pause(TRICKLE_PAUSE_MS, undefined, { signal });
    const seed = Math.floor(Math.random() * 2 ** 32);
    const round = await playRound(receiver, { ...TRICKLE, seed, signal });
    sum = {
      invoices: sum.invoices + round.audit.books.invoices.length,
      deliveries: sum.deliveries + round.deliveries.attempts,
      entries: sum.entries + round.audit.books.entries.length,
      byCron: sum.byCron + round.byCron,
    };
    if (round.problems.length > 0) say(`\n${roundTable(round)}\n`);
    else if (Date.now() > reportAt) {
      const { invoices, deliveries, entries, byCron } = sum;
      const time = new Date().toLocaleTimeString("en-GB");
      const left = byCron > 0 ? `; the cron processed ${byCron}` : "";
      say(
        `${time}  ${invoices} invoices, ${deliveries} deliveries, ${entries} entries; ` +
          `they agree${left}`,
      );
      reportAt = Date.now() + TRICKLE_REPORT_MS;
    }
  }
}

function sayWhere({ receiver: { url, databaseUrl } }: System, settings: Settings): void {
  say(`  own events      ${url}/webhooks/stripe/billing`);
  say(`  Connect events  ${url}/webhooks/stripe/connect`);
  say(`  health          ${url}/healthz`);
  say(`  operator        ${url}/ops   (OPS_TOKEN: ${tokenToShow(settings["OPS_TOKEN"])})`);
  say(`  database        ${withoutPassword(databaseUrl)}`);
  say(`  cron            every minute by itself, and now with: curl "${tickUrl(url)}"`);
  say("");
  say("  From a real account, with the secret that this prints as STRIPE_WEBHOOK_SECRET:");
  say(`  stripe listen --forward-to ${url}/webhooks/stripe/billing`);
  say("");
}

/** The made-up one is no secret; another one is. */
function tokenToShow(token: string | undefined): string {
  if (!token) return "empty, and nobody gets in";
  return token === MADE_UP_OPS_TOKEN ? token : "as you have set it";
}

/** Otherwise every delivery would be answered 503, and come again. */
function mustBeValid(settings: Settings): void {
  try {
    readSettings({ ...settings, HYPERDRIVE: { connectionString: "postgres://127.0.0.1/any" } });
    readSecrets(settings, "STRIPE_WEBHOOK_SECRET");
    readSecrets(settings, "STRIPE_CONNECT_WEBHOOK_SECRET");
  } catch (error) {
    throw error instanceof InvalidSetting ? new UsageError(error.message) : error;
  }
}

function settingsWith(mode: string | undefined): Record<string, string> {
  if (mode === undefined) return localSettings();
  if (mode !== "sync" && mode !== "async") {
    throw new UsageError(`--mode must be sync or async, not "${mode}"`);
  }
  return { ...localSettings(), RECEIVE_MODE: mode };
}

function parseFlags(args: string[]) {
  try {
    return parseArgs({ args, options: FLAGS }).values;
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error));
  }
}

const interrupted = interruption();
const once = process.argv.includes("--once");
try {
  const agrees = await main(process.argv.slice(2), interrupted);
  process.exitCode = agrees ? 0 : 1;
} catch (error) {
  if (interrupted.aborted) {
    // To be ended is how serving ends; a round that was cut short has shown nothing.
    if (!once) process.exitCode = 0;
  } else {
    const plain = error instanceof UsageError || error instanceof AlreadyRunning;
    console.error(plain ? error.message : error);
    process.exitCode = 1;
  }
}

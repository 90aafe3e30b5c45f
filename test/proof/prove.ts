/**
 * `npm run prove`: whatever could lose or double a payment is tried; and receivers that do lose and
 * double are tried too, to show that it would be seen.
 */
import { parseArgs } from "node:util";
import { type NumberFlag, readNumber, UsageError } from "../local/flags.ts";
import { interruption } from "../local/interruption.ts";
import { runPart } from "./part-process.ts";
import { LANES, PARTS, type Part, type PartOptions } from "./parts.ts";
import { renderSection, type Section } from "./report.ts";

const NAMES = PARTS.map(({ name }) => name);

const HELP = `Tries whatever could lose or double a payment, on the real Worker and a real Postgres.

  npm run prove                          all of it, in less than 20 minutes on 2 cores
  npm run prove -- --only races,hostile  some of it: ${NAMES.join(", ")}

  --seed N             repeats what was drawn at random [random]
  --soak-seconds N     how long the soak takes [600]
  --help               this

Where PgBouncer is not installed, what goes through it is skipped, and said to be.
Exit status 0 when nothing was lost, doubled or stuck and every control was caught, else 1; also 1
when all of it was skipped, since nothing was proved then.`;

const FLAGS = {
  only: { type: "string" },
  seed: { type: "string" },
  "soak-seconds": { type: "string" },
  help: { type: "boolean", short: "h" },
} as const;

const SEED: NumberFlag = { name: "seed", min: 0, max: 2 ** 31 - 1 };
const SOAK_SECONDS: NumberFlag = { name: "soak-seconds", min: 1, max: 86_400 };

async function main(args: string[], signal: AbortSignal): Promise<boolean> {
  const flags = parseFlags(args);
  if (flags.help) {
    console.log(HELP);
    return true;
  }
  const only = flags.only?.split(",").map(readPart) ?? NAMES;
  const options = {
    signal,
    seed: readNumber(SEED, flags.seed) ?? Math.floor(Math.random() * SEED.max),
    soakSeconds: readNumber(SOAK_SECONDS, flags["soak-seconds"]) ?? 600,
  };
  console.log(`Seed ${options.seed}.`);
  const startedAt = Date.now();
  const lanes = LANES.map((lane) =>
    runLane(
      lane.filter(({ name }) => only.includes(name)),
      options,
    ),
  );
  const ended = (await Promise.all(lanes)).flat();
  signal.throwIfAborted();
  console.log(`\n${ended.map(({ text }) => text).join("\n\n")}\n`);
  return verdict(ended, (Date.now() - startedAt) / 1_000);
}

interface Ended {
  readonly name: string;
  readonly outcome: "holds" | "failed" | "skipped";
  readonly text: string;
}

/** One part after the other. A part that throws has failed, and the next one is tried. */
async function runLane(
  lane: readonly Part[],
  options: Omit<PartOptions, "say">,
): Promise<readonly Ended[]> {
  const ended: Ended[] = [];
  for (const { name } of lane) {
    if (options.signal.aborted) break;
    const startedAt = Date.now();
    const say = (line: string): void => {
      const minutes = ((Date.now() - startedAt) / 60_000).toFixed(1);
      console.log(`${name} [${minutes} min] ${line}`);
    };
    try {
      const section = await runPart(name, { ...options, say });
      ended.push(section === null ? skipped(name) : endOf(name, section));
    } catch (error) {
      if (options.signal.aborted) break;
      console.error(error);
      ended.push({ name, outcome: "failed", text: `${name}: it did not come to its end` });
    }
    say(ended.at(-1)?.outcome ?? "");
  }
  return ended;
}

function endOf(name: string, section: Section): Ended {
  const outcome = section.failures.length === 0 ? "holds" : "failed";
  return { name, outcome, text: renderSection(section) };
}

function skipped(name: string): Ended {
  return { name, outcome: "skipped", text: `${name}: skipped, since PgBouncer is not installed` };
}

function verdict(ended: readonly Ended[], seconds: number): boolean {
  const named = (outcome: Ended["outcome"]): string[] =>
    ended.filter((part) => part.outcome === outcome).map(({ name }) => name);
  const failed = named("failed");
  const minutes = `${Math.floor(seconds / 60)} min ${Math.round(seconds % 60)} s`;
  console.log(
    `${named("holds").length} parts hold, ${failed.length} failed, ` +
      `${named("skipped").length} skipped, in ${minutes}.`,
  );
  if (failed.length > 0) console.log(`Failed: ${failed.join(", ")}.`);
  const proved = named("holds").length > 0;
  if (!proved) console.log("Nothing was proved.");
  return proved && failed.length === 0;
}

function parseFlags(args: string[]) {
  try {
    return parseArgs({ args, options: FLAGS }).values;
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error));
  }
}

function readPart(text: string): string {
  const name = text.trim();
  if (!NAMES.includes(name)) throw new UsageError(`--only: there is no part "${name}"`);
  return name;
}

const interrupted = interruption();
try {
  const holds = await main(process.argv.slice(2), interrupted);
  process.exitCode = holds ? 0 : 1;
} catch (error) {
  if (!interrupted.aborted) {
    const usage = error instanceof UsageError;
    console.error(usage ? `${error.message}\nSee: npm run prove -- --help` : error);
    process.exitCode = 1;
  }
}

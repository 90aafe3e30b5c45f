/**
 * `npm run requeue`: has events that need review, or were ignored, processed again. Works against
 * any database that DATABASE_URL names, a deployed one too; shows how many first, and asks.
 */
import { createInterface } from "node:readline/promises";
import { parseArgs } from "node:util";
import { connect } from "../db/connect.ts";
import { explain } from "../faults.ts";
import { countRequeueable, requeue } from "../inbox/review.ts";
import type { Selection } from "../inbox/transitions.ts";

const HELP = `Has parked or ignored events processed again, by the next tick.

  npm run requeue -- --id evt_…                one event
  npm run requeue -- --reason TypeError        all that are parked with this last_error
  npm run requeue -- --ignored-reason livemode all that were ignored for this reason
  --yes                                        without asking

DATABASE_URL names the database, for instance postgres://postgres@127.0.0.1:54329/stripe_inbox
while npm run dev runs. Events whose payload was purged stay as they are.`;

/** An operator waits longer than a delivery; a count may have to look at every row. */
const TIMEOUTS = { lockTimeoutMs: 10_000, statementTimeoutMs: 300_000 };

class Usage extends Error {}

function parseFlags(args: string[]): { selection: Selection | null; yes: boolean } {
  const { values } = parseArgs({
    args,
    options: {
      id: { type: "string" },
      reason: { type: "string" },
      "ignored-reason": { type: "string" },
      yes: { type: "boolean", default: false },
      help: { type: "boolean", short: "h", default: false },
    },
  });
  if (values.help) return { selection: null, yes: false };
  const selections: Selection[] = [
    ...(values.id === undefined ? [] : [{ eventId: values.id }]),
    ...(values.reason === undefined ? [] : [{ reason: values.reason }]),
    ...(values["ignored-reason"] === undefined
      ? []
      : [{ ignoredReason: values["ignored-reason"] }]),
  ];
  const [selection] = selections;
  if (!selection || selections.length > 1) {
    throw new Usage("Say which: one of --id, --reason and --ignored-reason.");
  }
  return { selection, yes: values.yes };
}

async function confirm(question: string): Promise<boolean> {
  if (!process.stdin.isTTY) throw new Usage("Nobody is there to be asked: add --yes.");
  const terminal = createInterface({ input: process.stdin, output: process.stdout });
  const answer = await terminal.question(question);
  terminal.close();
  return /^y(es)?$/i.test(answer.trim());
}

async function main(args: string[]): Promise<void> {
  const { selection, yes } = parseFlags(args);
  if (!selection) return console.log(HELP);
  const connectionString = process.env["DATABASE_URL"];
  if (!connectionString) throw new Usage("DATABASE_URL says which database; it is not set.");

  const db = await connect({ connectionString, pipeline: true }, new AbortController().signal);
  try {
    const events = await countRequeueable(db, selection, TIMEOUTS);
    console.log(`${events} parked or ignored events match.`);
    if (events === 0) return;
    if (!yes && !(await confirm(`Process them again? [y/N] `))) return console.log("Left alone.");
    console.log(`${await requeue(db, selection, TIMEOUTS)} are due now; the next tick takes them.`);
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

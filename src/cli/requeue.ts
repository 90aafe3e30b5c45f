/**
 * `npm run requeue`: has events that need review, or were ignored, processed again, and messages
 * that did not come through sent again. Works against any database that DATABASE_URL names, a
 * deployed one too; shows how many first, and asks.
 */
import { createInterface } from "node:readline/promises";
import { parseArgs } from "node:util";
import { countRequeueable, requeue } from "../inbox/review.ts";
import type { Selection } from "../inbox/transitions.ts";
import { countResendable, type MessageSelection, resend } from "../outbox/review.ts";
import { complain, Usage, withDatabase } from "./command.ts";

const HELP = `Has parked or ignored events processed again, or messages sent again, by the next tick.

  npm run requeue -- --id evt_…                one event
  npm run requeue -- --reason TypeError        all that are parked with this last_error
  npm run requeue -- --ignored-reason livemode all that were ignored for this reason
  npm run requeue -- --message 42              one message that is parked, or whose call is
  npm run requeue -- --message-reason Uncertain  all of them with this last_error
  npm run requeue -- --not-done 96             all that left so many hours ago, and are not done
  --yes                                        without asking

DATABASE_URL names the database, for instance postgres://postgres@127.0.0.1:54329/stripe_inbox
while npm run dev runs. Events whose payload was purged stay as they are.`;

/** An operator waits longer than a delivery; a count may have to look at every row. */
const TIMEOUTS = { lockTimeoutMs: 10_000, statementTimeoutMs: 300_000 };

type Chosen = { readonly events: Selection } | { readonly messages: MessageSelection };

function parseFlags(args: string[]): { chosen: Chosen | null; yes: boolean } {
  const { values } = parseArgs({
    args,
    options: {
      id: { type: "string" },
      reason: { type: "string" },
      "ignored-reason": { type: "string" },
      message: { type: "string" },
      "message-reason": { type: "string" },
      "not-done": { type: "string" },
      yes: { type: "boolean", default: false },
      help: { type: "boolean", short: "h", default: false },
    },
  });
  if (values.help) return { chosen: null, yes: false };
  const { id, reason, message, yes } = values;
  const ignoredReason = values["ignored-reason"];
  const messageReason = values["message-reason"];
  const notDone = values["not-done"];
  const all: Chosen[] = [
    ...(id === undefined ? [] : [{ events: { eventId: id } }]),
    ...(reason === undefined ? [] : [{ events: { reason } }]),
    ...(ignoredReason === undefined ? [] : [{ events: { ignoredReason } }]),
    ...(message === undefined
      ? []
      : [{ messages: { messageId: readNumber("--message", message) } }]),
    ...(messageReason === undefined ? [] : [{ messages: { reason: messageReason } }]),
    ...(notDone === undefined
      ? []
      : [{ messages: { leftHoursAgo: readNumber("--not-done", notDone) } }]),
  ];
  const [chosen] = all;
  if (!chosen || all.length > 1) {
    throw new Usage(
      "Say which: one of --id, --reason, --ignored-reason, --message, --message-reason and --not-done.",
    );
  }
  return { chosen, yes };
}

function readNumber(flag: string, text: string): number {
  if (!/^\d{1,9}$/.test(text)) throw new Usage(`${flag}: "${text}" is not a whole number.`);
  return Number(text);
}

async function confirm(question: string): Promise<boolean> {
  if (!process.stdin.isTTY) throw new Usage("Nobody is there to be asked: add --yes.");
  const terminal = createInterface({ input: process.stdin, output: process.stdout });
  const answer = await terminal.question(question);
  terminal.close();
  return /^y(es)?$/i.test(answer.trim());
}

async function main(args: string[]): Promise<void> {
  const { chosen, yes } = parseFlags(args);
  if (!chosen) return console.log(HELP);
  await withDatabase(async (db) => {
    const count =
      "events" in chosen
        ? await countRequeueable(db, chosen.events, TIMEOUTS)
        : await countResendable(db, chosen.messages, TIMEOUTS);
    const what = "events" in chosen ? "parked or ignored events" : "messages";
    console.log(`${count} ${what} match.`);
    if (count === 0) return;
    const question = "events" in chosen ? "Process them again?" : "Send them again?";
    if (!yes && !(await confirm(`${question} [y/N] `))) return console.log("Left alone.");
    const taken =
      "events" in chosen
        ? await requeue(db, chosen.events, TIMEOUTS)
        : await resend(db, chosen.messages, TIMEOUTS);
    console.log(`${taken} are due now; the next tick takes them.`);
  });
}

try {
  await main(process.argv.slice(2));
} catch (error) {
  complain(error, HELP);
  process.exitCode = 1;
}

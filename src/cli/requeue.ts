/**
 * `npm run requeue`: has events that need review, or were ignored, processed again, and messages
 * that did not come through sent again. Works against any database that DATABASE_URL names, a
 * deployed one too; shows how many first, and asks.
 */
import { createInterface } from "node:readline/promises";
import { userInfo } from "node:os";
import { parseArgs } from "node:util";
import type { Connection } from "../db/connect.ts";
import type { Count } from "../db/rows.ts";
import { showRequeueable } from "../inbox/review.ts";
import type { Selection } from "../inbox/selection.ts";
import { inBatches, requeueEvents, requeueMessages } from "../operate/actions.ts";
import { type MessageSelection, showResendable } from "../outbox/review.ts";
import { complain, Usage, withDatabase } from "./command.ts";

const HELP = `Has parked or ignored events processed again, or messages sent again, by the next tick.

  npm run requeue -- --id evt_…                one event
  npm run requeue -- --reason TypeError        all that are parked with this last_error
  npm run requeue -- --ignored-reason livemode all that were ignored for this reason
  npm run requeue -- --message 42              one message that is parked, or whose call is
  npm run requeue -- --message-reason Uncertain  all of them with this last_error
  npm run requeue -- --not-done 96             all that left so many hours ago, and are not done
  --why "mended in …"                          goes on record with it
  --yes                                        without asking; needs --why

DATABASE_URL names the database, for instance postgres://postgres@127.0.0.1:54329/stripe_inbox
while npm run dev runs. Events whose payload was purged stay as they are.`;

/** An operator waits longer than a delivery; a count may have to look at every row. */
const TIMEOUTS = { lockTimeoutMs: 10_000, statementTimeoutMs: 300_000 };

/** In one run of the command, which takes some minutes then. */
const MOST = 1_000_000;

type Chosen = { readonly events: Selection } | { readonly messages: MessageSelection };

interface Flags {
  readonly chosen: Chosen | null;
  readonly yes: boolean;
  /** Undefined: to be asked for. */
  readonly why: string | undefined;
}

function parseFlags(args: string[]): Flags {
  const { values } = parseArgs({
    args,
    options: {
      id: { type: "string" },
      reason: { type: "string" },
      "ignored-reason": { type: "string" },
      message: { type: "string" },
      "message-reason": { type: "string" },
      "not-done": { type: "string" },
      why: { type: "string" },
      yes: { type: "boolean", default: false },
      help: { type: "boolean", short: "h", default: false },
    },
  });
  if (values.help) return { chosen: null, yes: false, why: undefined };
  const { id, reason, message, yes, why } = values;
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
  if (yes && !why?.trim()) throw new Usage("--why says why: it goes on record.");
  return { chosen, yes, why };
}

function readNumber(flag: string, text: string): number {
  if (!/^\d{1,9}$/.test(text)) throw new Usage(`${flag}: "${text}" is not a whole number.`);
  return Number(text);
}

async function ask(question: string): Promise<string> {
  if (!process.stdin.isTTY) throw new Usage("Nobody is there to be asked: add --yes and --why.");
  const terminal = createInterface({ input: process.stdin, output: process.stdout });
  const answer = await terminal.question(question);
  terminal.close();
  return answer.trim();
}

/** Whoever is logged in here; in a container there may be nobody. */
function operatorName(): string {
  try {
    return userInfo().username;
  } catch {
    return process.env["USER"] ?? `uid ${process.getuid?.() ?? "unknown"}`;
  }
}

/** How many, and the same choice, kept to what was counted: one that fails again is not taken twice. */
async function show(
  db: Connection,
  chosen: Chosen,
): Promise<{ readonly chosen: Chosen; readonly of: Count }> {
  if ("events" in chosen) {
    const { events, shown } = await showRequeueable(db, chosen.events, MOST, TIMEOUTS);
    return { of: events, chosen: { events: { ...chosen.events, shown: shown ?? undefined } } };
  }
  const { messages, shown } = await showResendable(db, chosen.messages, MOST, TIMEOUTS);
  return { of: messages, chosen: { messages: { ...chosen.messages, shown: shown ?? undefined } } };
}

async function main(args: string[]): Promise<void> {
  const { chosen, yes, why } = parseFlags(args);
  if (!chosen) return console.log(HELP);
  await withDatabase(async (db) => {
    const { chosen: shown, of } = await show(db, chosen);
    const { count, more } = of;
    const what = "events" in chosen ? "parked or ignored events" : "messages";
    console.log(
      `${count} ${what} match${more ? ", and more that are left for another time" : ""}.`,
    );
    if (count === 0) return;
    const question = "events" in chosen ? "Process them again?" : "Send them again?";
    if (!yes && !/^y(es)?$/i.test(await ask(`${question} [y/N] `))) {
      return console.log("Left alone.");
    }
    const given = why?.trim() || (await ask("Why? It goes on record: "));
    if (given === "") return console.log("Left alone: nothing is done without a why.");
    const by = { operator: operatorName(), via: "cli", why: given } as const;
    const faults: unknown[] = [];
    const { affected } = await inBatches(
      count,
      () => true,
      (most) =>
        "events" in shown
          ? requeueEvents(db, shown.events, most, by, TIMEOUTS)
          : requeueMessages(db, shown.messages, most, by, TIMEOUTS),
      (fault) => faults.push(fault),
    );
    console.log(`${affected} are due now; the next tick takes them.`);
    for (const fault of faults) throw fault;
  });
}

try {
  await main(process.argv.slice(2));
} catch (error) {
  complain(error, HELP);
  process.exitCode = 1;
}

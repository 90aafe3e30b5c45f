/**
 * `npm run verify`: the invoices and payments that are booked here against Stripe's own. Works
 * against any database that DATABASE_URL names, a deployed one too.
 */
import { parseArgs } from "node:util";
import { toldAsEvent } from "../billing/repair.ts";
import { type Books, compareAll, compareFresh, type Compared } from "../billing/verification.ts";
import { readAccount, readStripeApi } from "../config.ts";
import { endpoints, rulesOf } from "../endpoints.ts";
import { findUnsettledOf } from "../inbox/review.ts";
import { recordFound, resolveDiscrepancy } from "../reconcile/discrepancies.ts";
import { reprocess } from "../reconcile/reprocess.ts";
import { invoiceLists } from "../stripe/lists.ts";
import { complain, readSince, Usage, withDatabase } from "./command.ts";
import { patiently } from "./patience.ts";

const HELP = `Compares the invoices and payments booked here with Stripe's own, and opens what differs
as a discrepancy: what was created there, or changed here, from a day on; and, however old, what is
not paid or void here.

  npm run verify -- --since 2026-11-01   from that day on
  npm run verify -- --since 7d           of the last seven days
  --repair     has what was missed done by the handlers, where what Stripe says leads on from
               where we are; the rest is for a person

DATABASE_URL names the database, STRIPE_API_KEY the account. STRIPE_LIVEMODE [true] says whose
invoices are booked here; those of STRIPE_CONNECTED_ACCOUNTS are left out.
Exit status 0 when nothing differs but what a person has settled, 1 when something does, 2 when that
could not be found out.`;

/** An operator waits longer than a delivery; what changed here may have to be looked for. */
const TIMEOUTS = { lockTimeoutMs: 10_000, statementTimeoutMs: 300_000 };
const REPAIR = {
  timeouts: { lockTimeoutMs: 3_000, statementTimeoutMs: 5_000 },
  maxAttempts: 1,
  backoffCapSeconds: 300,
};
const REPAIR_MS = 20_000;

interface Flags {
  readonly since: Date;
  readonly repair: boolean;
}

function parseFlags(args: string[]): Flags | null {
  const { values } = parseArgs({
    args,
    options: {
      since: { type: "string", default: "" },
      repair: { type: "boolean", default: false },
      help: { type: "boolean", short: "h", default: false },
    },
  });
  if (values.help) return null;
  return { since: readSince(values.since), repair: values.repair };
}

/** @returns the exit status. */
async function main(args: string[]): Promise<number> {
  const flags = parseFlags(args);
  if (!flags) return say(HELP, 0);
  const api = readStripeApi(process.env);
  const { livemode, connectedAccounts } = readAccount(process.env);
  const lists = (account: string | null) => patiently(invoiceLists(api, account));
  return withDatabase((db) => {
    const own = lists(null);
    const books = { db, timeouts: TIMEOUTS, own, connected: connectedAccounts.map(lists) };
    return verify(books, { ...flags, livemode: livemode ?? true });
  });
}

interface Options extends Flags {
  /** Whose invoices are booked here; as shipped, those of live mode. */
  readonly livemode: boolean;
}

async function verify(books: Books, options: Options): Promise<number> {
  const sum = { compared: 0, moving: 0, found: 0, open: 0 };
  const settleOne = async (one: Compared): Promise<void> => {
    if (!one.difference) return;
    sum.found += 1;
    if (!(await settle(books, one, options))) sum.open += 1;
  };
  // Before one invoice is known on both sides, another account may have been asked.
  let isOurs = false;
  let held: Compared[] = [];
  for await (const one of compareAll(books, options.since)) {
    assertMode(one, options.livemode);
    sum[one.moving ? "moving" : "compared"] += 1;
    if (!isOurs && one.isHere && one.there !== null) {
      isOurs = true;
      const ids = held.map(({ id }) => id);
      held = [];
      // What was held back may have been put right since.
      for (const again of await compareFresh(books, ids)) await settleOne(again);
    }
    if (isOurs) await settleOne(one);
    else if (one.difference) held.push(one);
  }
  if (held.some(({ difference }) => difference?.kind === "missing_at_stripe")) {
    return say(
      "Not one invoice of this database is known to this API key: another account, or the other " +
        "mode? Nothing was put on record.",
      2,
    );
  }
  for (const one of held) await settleOne(one);
  const moving = sum.moving === 0 ? "" : `, ${sum.moving} changed too lately to be compared`;
  const settled = sum.found === sum.open ? "" : `, ${sum.found - sum.open} of them settled`;
  const differences = sum.found === 1 ? "1 difference" : `${sum.found} differences`;
  return say(
    `${sum.compared} invoices compared${moving}: ${differences}${settled}.`,
    sum.open > 0 ? 1 : 0,
  );
}

/** @throws Usage when the key is one of Stripe's other mode. */
function assertMode({ id, there }: Compared, livemode: boolean): void {
  const is = there?.["livemode"];
  if (typeof is !== "boolean" || is === livemode) return;
  throw new Usage(`${id} says livemode ${is}, and STRIPE_LIVEMODE ${livemode}: which is right?`);
}

/** One difference to its end. @returns whether it is settled now. */
async function settle(books: Books, one: Compared, options: Options): Promise<boolean> {
  const { difference, id } = one;
  if (!difference) return true;
  const standing = await recordFound(books.db, difference, TIMEOUTS);
  const unsettled = await findUnsettledOf(books.db, id, TIMEOUTS);
  const repairable = options.repair && difference.repairable && unsettled === null;
  const repaired = repairable && (await repairOne(books, one, options));
  const why =
    unsettled === null
      ? ""
      : `; ${unsettled.eventId} ${unsettled.parked ? "needs review" : "waits to be processed"}`;
  say(describe(one, (repaired ? "repaired" : standing) + why), 0);
  return repaired || standing === "settled";
}

/** Told to the handlers as the event that was missed; whether the two agree then. */
async function repairOne(
  books: Books,
  { id, there, difference }: Compared,
  { livemode }: Options,
): Promise<boolean> {
  const told = there && toldAsEvent(there);
  if (!told || !difference) return false;
  const endsAt = Date.now() + REPAIR_MS;
  const policy = { ...REPAIR, remainingMs: () => endsAt - Date.now() };
  const rules = Object.entries(endpoints).map(([name, endpoint]) =>
    rulesOf(name, endpoint, { livemode }),
  );
  const received = await reprocess(books.db, told.json, rules, policy);
  if (received?.outcome !== "processed") return false;
  const [again] = await compareFresh(books, [id]);
  if (again?.difference) return false;
  await resolveDiscrepancy(
    books.db,
    difference,
    `repaired by ${told.type} as Stripe has it`,
    TIMEOUTS,
  );
  return true;
}

function describe({ difference }: Compared, end: string): string {
  if (!difference) return "";
  const { kind, objectId, detail } = difference;
  const here = side(detail["status"], detail["booked_amount"], detail["booked_currency"]);
  const there = side(detail["stripe_status"], detail["stripe_amount"], detail["stripe_currency"]);
  return `${kind}  ${objectId}  here: ${here}  Stripe: ${there}  (${end})`;
}

function side(...values: readonly (string | number | null | undefined)[]): string {
  return values.filter((value) => value !== null && value !== undefined).join(" ") || "nothing";
}

function say(text: string, status: number): number {
  console.log(text);
  return status;
}

try {
  process.exitCode = await main(process.argv.slice(2));
} catch (error) {
  complain(error, HELP);
  process.exitCode = 2;
}

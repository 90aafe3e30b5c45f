/**
 * `npm run verify`: the invoices and payments that are booked here against Stripe's own. Works
 * against any database that DATABASE_URL names, a deployed one too.
 */
import { parseArgs } from "node:util";
import { readInvoicesHere } from "../billing/booked.ts";
import { toldAsEvent } from "../billing/repair.ts";
import { compareAll, compareOne, type Compared } from "../billing/verification.ts";
import { InvalidSetting, readConnectedAccounts, readStripeApi } from "../config.ts";
import { type Connection, connect } from "../db/connect.ts";
import { endpoints } from "../endpoints.ts";
import { explain } from "../faults.ts";
import { recordFound, resolveDiscrepancy } from "../reconcile/discrepancies.ts";
import { reprocess } from "../reconcile/reprocess.ts";
import { invoiceLists } from "../stripe/lists.ts";
import { patiently } from "./patience.ts";

const HELP = `Compares the invoices and payments booked here with Stripe's own, and opens what differs
as a discrepancy.

  npm run verify -- --since 2026-11-01   invoices created, or changed here, from that day on
  npm run verify -- --since 7d           in the last seven days
  --repair     has what was missed done by the handlers, where what Stripe says leads on from
               where we are; the rest is for a person

DATABASE_URL names the database, STRIPE_API_KEY the account; STRIPE_CONNECTED_ACCOUNTS those
connected to it whose invoices are booked here, too.
Exit status 0 when nothing differs, 1 when something does, 2 when that could not be found out.`;

/** An operator waits longer than a delivery; what changed here may have to be looked for. */
const TIMEOUTS = { lockTimeoutMs: 10_000, statementTimeoutMs: 300_000 };
const REPAIR = {
  timeouts: { lockTimeoutMs: 3_000, statementTimeoutMs: 5_000 },
  maxAttempts: 1,
  backoffCapSeconds: 300,
};
const REPAIR_MS = 20_000;
const DAY_MS = 86_400_000;

class Usage extends Error {}

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
  const days = /^(\d{1,4})d$/.exec(values.since)?.[1];
  const day = /^\d{4}-\d{2}-\d{2}$/.test(values.since) ? values.since : "";
  const since = days === undefined ? new Date(day) : new Date(Date.now() - Number(days) * DAY_MS);
  if (Number.isNaN(since.getTime()))
    throw new Usage("--since says from when on: 2026-11-01, or 7d.");
  return { since, repair: values.repair };
}

/** @returns the exit status. */
async function main(args: string[]): Promise<number> {
  const flags = parseFlags(args);
  if (!flags) return say(HELP, 0);
  const connectionString = process.env["DATABASE_URL"];
  if (!connectionString) throw new Usage("DATABASE_URL says which database; it is not set.");
  const api = readStripeApi(process.env);
  const accounts = [null, ...readConnectedAccounts(process.env)].map((account) =>
    patiently(invoiceLists(api, account)),
  );
  const db = await connect({ connectionString, pipeline: true }, new AbortController().signal);
  try {
    const all = compareAll(db, accounts, { since: flags.since, timeouts: TIMEOUTS });
    const sum = { compared: 0, moving: 0, matched: 0 };
    const differing: Compared[] = [];
    for await (const one of all) {
      if (one.moving) sum.moving += 1;
      else sum.compared += 1;
      if (one.isHere && one.there !== null) sum.matched += 1;
      if (one.difference) differing.push(one);
    }
    const strange = differing.some(({ difference }) => difference?.kind === "missing_at_stripe");
    if (strange && sum.matched === 0) {
      return say(
        "Not one invoice of this database is known to this API key: another account, or the other " +
          "mode? Nothing was put on record.",
        2,
      );
    }
    let open = 0;
    for (const one of differing) open += (await settle(db, one, flags.repair)) ? 0 : 1;
    const moving = sum.moving === 0 ? "" : `, ${sum.moving} changed too lately to be compared`;
    return say(
      `${sum.compared} invoices compared${moving}: ${open} differences are open.`,
      open > 0 ? 1 : 0,
    );
  } finally {
    await db.close();
  }
}

/** One difference to its end. @returns whether it is settled now. */
async function settle(db: Connection, one: Compared, repair: boolean): Promise<boolean> {
  const { difference } = one;
  if (!difference) return true;
  const standing = await recordFound(db, difference, TIMEOUTS);
  const repaired = repair && difference.repairable && (await repairOne(db, one));
  say(describe(one, repaired ? "repaired" : standing), 0);
  return repaired || standing === "settled";
}

/** Told to the handlers as the event that was missed; whether the two agree then. */
async function repairOne(db: Connection, { id, there, difference }: Compared): Promise<boolean> {
  const told = there && toldAsEvent(there, String(Date.now()));
  if (!told || !difference) return false;
  const endsAt = Date.now() + REPAIR_MS;
  const policy = { ...REPAIR, remainingMs: () => endsAt - Date.now() };
  const rules = Object.entries(endpoints).map(
    ([name, { accounts, handlers, livemode = null }]) => ({
      name,
      accounts,
      handlers,
      livemode,
    }),
  );
  const received = await reprocess(db, told.json, rules, policy);
  if (received?.outcome !== "processed") return false;
  const here = (await readInvoicesHere(db, [id], TIMEOUTS)).get(id) ?? null;
  if (compareOne(id, there, here).difference) return false;
  await resolveDiscrepancy(db, difference, `repaired by ${told.type} as Stripe has it`, TIMEOUTS);
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
  const usage =
    error instanceof Usage ||
    error instanceof InvalidSetting ||
    (error instanceof TypeError && "code" in error);
  console.error(usage ? `${error.message}\n\n${HELP}` : explain(error));
  process.exitCode = 2;
}

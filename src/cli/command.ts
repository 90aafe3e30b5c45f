/** What the operator's commands have in common: which database, from when on, and how they fail. */
import { InvalidSetting } from "../config.ts";
import { type Connection, connect } from "../db/connect.ts";
import { parseConnectionString, withTlsOfTheDriver } from "../db/connection-string.ts";
import { DatabaseUnavailable } from "../db/unavailable.ts";
import { sqlStateOf } from "../db/postgres-errors.ts";
import { explain as explainFault } from "../faults.ts";
import { errorClass } from "../log.ts";
import { CallFailed } from "../stripe/call-failed.ts";

/** What was asked for makes no sense; the message says why. */
export class Usage extends Error {
  override readonly name = "Usage";
}

const DAY_MS = 86_400_000;

/** @throws Usage unless it is a day that has begun (UTC), or a number of days such as `7d`. */
export function readSince(text: string | undefined): Date {
  const days = /^([1-9]\d{0,3})d$/.exec(text ?? "")?.[1];
  const day = /^\d{4}-\d{2}-\d{2}$/.test(text ?? "") ? `${text}` : "";
  const since = days === undefined ? new Date(day) : new Date(Date.now() - Number(days) * DAY_MS);
  if (Number.isNaN(since.getTime())) {
    throw new Usage("--since says from when on: a day such as 2026-11-01, or 7d.");
  }
  if (since.getTime() > Date.now()) throw new Usage("--since lies in the future.");
  return since;
}

/** On a connection to the database that DATABASE_URL names. */
export async function withDatabase<T>(use: (db: Connection) => Promise<T>): Promise<T> {
  const given = process.env["DATABASE_URL"];
  if (!given) throw new Usage("DATABASE_URL says which database; it is not set.");
  const url = parseConnectionString(given);
  if (!url) throw new Usage("DATABASE_URL is no connection string (postgres://…).");
  const connectionString = withTlsOfTheDriver(url).href;
  const pipeline = process.env["PIPELINE"] !== "off";
  const db = await connect({ connectionString, pipeline }, new AbortController().signal);
  try {
    return await use(db);
  } finally {
    await db.close();
  }
}

/** Says what went wrong, and what to do; never a text that is not our own. */
export function complain(error: unknown, help: string): void {
  const usage =
    error instanceof Usage ||
    error instanceof InvalidSetting ||
    (error instanceof TypeError && "code" in error);
  console.error(usage ? `${error.message}\n\n${help}` : explain(error));
}

function explain(error: unknown): string {
  if (error instanceof CallFailed) return explainCall(error);
  const { todo } = explainFault(error);
  const sqlState = sqlStateOf(error);
  const suffix = sqlState === null ? "" : ` (SQLSTATE ${sqlState})`;
  const advice = typeof todo === "string" ? todo : null;
  return error instanceof DatabaseUnavailable
    ? `DatabaseUnavailable: ${error.message}${advice === null ? "" : ` ${advice}`}${suffix}`
    : `${advice ?? errorClass(error)}${suffix}`;
}

function explainCall({ code }: CallFailed): string {
  switch (code) {
    case "Stripe:401":
      return "Stripe does not know this STRIPE_API_KEY (Stripe:401)";
    case "Stripe:403":
      return "This STRIPE_API_KEY may not read what is to be compared (Stripe:403)";
    default:
      return `Stripe could not be asked: ${code}`;
  }
}

/** How the database is looked at, and what it means when that is refused. */
import type { SQL } from "drizzle-orm";
import type { Connection, Row } from "../db/connect.ts";
import { DatabaseUnavailable } from "../db/unavailable.ts";
import { sqlStateOf } from "../db/postgres-errors.ts";
import { fail, type Finding, skipped } from "./finding.ts";

/** Values that no other setting has by chance. */
export const TIMEOUTS = { lockTimeoutMs: 3_210, statementTimeoutMs: 7_654 };

/** @param earlier what was found before. */
export type Look = (earlier: readonly Finding[]) => Promise<readonly Finding[] | Finding>;

/** What another check has named already, where it has failed, is no fault of its own. */
const REFUSALS = [
  { state: /^(42P01|3F000)$/, namedBy: "migrations", found: "the tables are not there" },
  { state: /^(42P01|3F000)$/, namedBy: "privileges", found: "the tables are not there" },
  { state: /^42501$/, namedBy: "privileges", found: "this role may not: see privileges" },
  { state: /^25006$/, namedBy: "transactions", found: "nothing can be written: see transactions" },
] as const;

/**
 * Adds what `look` finds, or why it could not.
 *
 * @throws DatabaseUnavailable when the connection is gone, and nothing more can be looked at.
 */
export async function lookAt(
  db: Connection,
  findings: Finding[],
  check: string,
  look: Look,
): Promise<void> {
  try {
    findings.push(...[await look(findings)].flat());
  } catch (error) {
    if (db.isLost()) throw new DatabaseUnavailable("the connection was lost", { cause: error });
    findings.push(refusal(check, sqlStateOf(error), findings));
  }
}

export function hasFailed(findings: readonly Finding[], check: string): boolean {
  return findings.some((one) => one.check === check && one.state === "fail");
}

function refusal(check: string, state: string | null, findings: readonly Finding[]): Finding {
  if (state === null) return fail(check, "it could not be looked at", "Look at the log");
  const known = REFUSALS.find((one) => one.state.test(state) && hasFailed(findings, one.namedBy));
  if (known) return skipped(check, known.found);
  return fail(
    check,
    `Postgres refuses it (SQLSTATE ${state})`,
    "https://www.postgresql.org/docs/current/errcodes-appendix.html",
  );
}

/** Outside of any transaction, as Hyperdrive caches it. */
export async function read(db: Connection, query: SQL): Promise<readonly Row[]> {
  const [result] = await Promise.all(db.send([db.compile(query)]));
  return result?.rows ?? [];
}

/** Each thing that can be wrong in a deployment, looked at through its real bindings. */
import { type Env, InvalidSetting, readDatabase } from "../config.ts";
import type { Database } from "../db/connect.ts";
import { withConnection } from "../db/with-connection.ts";
import type { Endpoints } from "../endpoints.ts";
import { explain } from "../faults.ts";
import { type Sweeping, sweepingOf } from "../sweeping.ts";
import { examineBetween } from "./between.ts";
import { examineCrons } from "./crons.ts";
import { examineDatabase } from "./database.ts";
import { fail, type Finding, ok } from "./finding.ts";
import { lookAt } from "./looking.ts";
import { examineSettings, refused } from "./settings.ts";
import { examineStripe } from "./stripe.ts";

export interface Diagnosis {
  /** Nothing failed; there may be warnings. */
  readonly ok: boolean;
  readonly findings: readonly Finding[];
}

const DEADLINE_MS = 15_000;

/** @param here where this deployment was reached. */
export async function examine(
  endpoints: Endpoints,
  env: Env,
  here: URL,
  afterwards: (rest: Promise<unknown>) => void,
): Promise<Diagnosis> {
  const [database, stripe] = await Promise.all([
    throughDatabase(env, sweepingOf(endpoints, env), afterwards),
    examineStripe(endpoints, env, here),
  ]);
  const findings = [...examineSettings(endpoints, env), ...database, ...stripe];
  return { ok: findings.every(({ state }) => state !== "fail"), findings };
}

async function throughDatabase(
  env: Env,
  sweeping: Sweeping,
  afterwards: (rest: Promise<unknown>) => void,
): Promise<readonly Finding[]> {
  const check = "database";
  let database: Database;
  try {
    database = readDatabase(env);
  } catch (error) {
    if (!(error instanceof InvalidSetting)) throw error;
    return [refused(check, env, error)];
  }
  const road = !database.webSocket
    ? "Hyperdrive's"
    : database.webSocket.proxy
      ? "DATABASE_URL, through NEON_WS_PROXY"
      : "DATABASE_URL";
  const seen: Finding[] = [];
  try {
    await withConnection(database, { deadlineMs: DEADLINE_MS, afterwards }, async ({ db }) => {
      await examineDatabase(db, seen);
      await examineBetween(db, seen, database);
      await lookAt(db, seen, "crons", () => examineCrons(db, sweeping));
    });
    return [ok(check, "it answers"), ...seen];
  } catch (error) {
    const { error: name, sqlstate, detail, todo } = explain(error);
    const code = sqlstate === undefined ? "" : ` (SQLSTATE ${sqlstate})`;
    const found = `${detail ?? name}${code}`;
    const look = `Is it up, does the connection string (${road}) lead there?`;
    return [fail(check, found, typeof todo === "string" ? todo : look), ...seen];
  }
}

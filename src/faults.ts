/** What may be said of a fault: its class, and texts that are our own. */
import { InvalidSetting } from "./config.ts";
import { sqlStateOf, wordsOf } from "./db/postgres-errors.ts";
import { CannotConnect, DatabaseUnavailable } from "./db/unavailable.ts";
import { errorClass, type Fields } from "./log.ts";

export function explain(fault: unknown): Fields {
  if (fault instanceof InvalidSetting) {
    return { error: fault.name, setting: fault.setting, detail: fault.message };
  }
  const sqlstate = sqlStateOf(fault) ?? undefined;
  if (fault instanceof DatabaseUnavailable) {
    return { error: fault.name, detail: fault.message, sqlstate, todo: todoFor(fault, sqlstate) };
  }
  return { error: errorClass(fault), sqlstate };
}

function todoFor(fault: DatabaseUnavailable, sqlstate: string | undefined): string | undefined {
  if (fault instanceof CannotConnect && sqlstate === "XX000") return todoForProxy(wordsOf(fault));
  return TODOS[sqlstate ?? ""];
}

const CONNECTION_STRING = "the connection string (Hyperdrive's, or DATABASE_URL)";
const WRONG_PASSWORD = `The password is wrong: put it right in ${CONNECTION_STRING}.`;

/** Who is not let in. https://www.postgresql.org/docs/current/errcodes-appendix.html */
const TODOS: Readonly<Record<string, string>> = {
  "28P01": WRONG_PASSWORD,
  "28000": `This role may not connect: put it right in ${CONNECTION_STRING}.`,
  "3D000": `There is no such database: put its name right in ${CONNECTION_STRING}.`,
};

/**
 * Neon's proxy has one SQLSTATE for whatever it refuses, and tells it apart in words alone.
 * https://github.com/neondatabase/neon/blob/main/proxy/src/stream.rs
 */
function todoForProxy(words: string): string {
  if (/password authentication failed/i.test(words)) return WRONG_PASSWORD;
  return /endpoint|does not exist/i.test(words)
    ? `Neon has no such endpoint or database, or it is switched off: look at ${CONNECTION_STRING}.`
    : `Neon's proxy refused it: is the password right, is the endpoint there? See ${CONNECTION_STRING}.`;
}

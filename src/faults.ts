/** What may be said of a fault: its class, and texts that are our own. */
import { InvalidSetting } from "./config.ts";
import { DatabaseUnavailable } from "./db/connect.ts";
import { sqlStateOf } from "./db/postgres-errors.ts";
import { errorClass, type Fields } from "./log.ts";

export function explain(fault: unknown): Fields {
  if (fault instanceof InvalidSetting) {
    return { error: fault.name, setting: fault.setting, detail: fault.message };
  }
  const sqlstate = sqlStateOf(fault) ?? undefined;
  if (fault instanceof DatabaseUnavailable) {
    return { error: fault.name, detail: fault.message, sqlstate, todo: TODOS[sqlstate ?? ""] };
  }
  return { error: errorClass(fault), sqlstate };
}

const CONNECTION_STRING = "the connection string (Hyperdrive's, or DATABASE_URL)";

/** Who is not let in. https://www.postgresql.org/docs/current/errcodes-appendix.html */
const TODOS: Readonly<Record<string, string>> = {
  "28P01": `The password is wrong: put it right in ${CONNECTION_STRING}.`,
  "28000": `This role may not connect: put it right in ${CONNECTION_STRING}.`,
  "3D000": `There is no such database: put its name right in ${CONNECTION_STRING}.`,
};

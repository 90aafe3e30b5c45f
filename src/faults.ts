/** What may be said of a fault: its class, and texts that are our own. */
import { InvalidSetting } from "./config.ts";
import { DatabaseUnavailable, sqlStateOf } from "./db/connect.ts";
import { errorClass, type Fields } from "./log.ts";

export function explain(fault: unknown): Fields {
  if (fault instanceof InvalidSetting) {
    return { error: fault.name, setting: fault.setting, detail: fault.message };
  }
  const sqlstate = sqlStateOf(fault) ?? undefined;
  if (fault instanceof DatabaseUnavailable) {
    return { error: fault.name, detail: fault.message, sqlstate };
  }
  return { error: errorClass(fault), sqlstate };
}

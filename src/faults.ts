/** What may be said of a fault: its class, and texts that are our own. */
import { InvalidSetting } from "./config.ts";
import { DatabaseUnavailable, sqlStateOf } from "./db/connect.ts";
import { errorClass, type Fields } from "./log.ts";
import { CallFailed } from "./stripe/api.ts";

export function explain(fault: unknown): Fields {
  if (fault instanceof InvalidSetting) {
    return { error: fault.name, setting: fault.setting, detail: fault.message };
  }
  const sqlstate = sqlStateOf(fault) ?? undefined;
  if (fault instanceof DatabaseUnavailable) {
    return { error: fault.name, detail: fault.message, sqlstate };
  }
  if (fault instanceof CallFailed) return { error: fault.name, code: fault.code };
  return { error: errorClass(fault), sqlstate };
}

/**
 * One JSON line per thing that happened. Fields are ids, types, codes and durations:
 * never a payload, a secret, a name or an error's message.
 */
export type Level = "info" | "warn" | "error";
export type Fields = Readonly<Record<string, string | number | boolean | null | undefined>>;

export function log(level: Level, message: string, fields: Fields): void {
  const line = JSON.stringify({ level, message, ...fields });
  switch (level) {
    case "info":
      return console.log(line);
    case "warn":
      return console.warn(line);
    case "error":
      return console.error(line);
  }
}

/** The name of an error's class, if it is nothing but a name. */
export function errorClass(error: unknown): string {
  const name = error instanceof Error ? error.name : "NotAnError";
  return /^\w{1,64}$/.test(name) ? name : "Error";
}

/** The database could not be reached, or was lost. Messages are our own, and repeat nothing given. */

/** Whatever was under way may have happened. */
export class DatabaseUnavailable extends Error {
  override readonly name = "DatabaseUnavailable";

  constructor(reason: string, options?: ErrorOptions) {
    super(`The database is unavailable: ${reason}.`, options);
  }
}

/** There never was a connection. */
export class CannotConnect extends DatabaseUnavailable {
  constructor(cause: unknown) {
    super(`it cannot be connected to${why(cause)}`, { cause });
  }
}

/** What the machine, or TLS, says of it; what Postgres says is a SQLSTATE. */
function why(error: unknown): string {
  if (!(error instanceof Error)) return "";
  if (error.message.includes("does not support SSL")) {
    return ": it offers no TLS, and sslmode asks for it";
  }
  const [, status] = /\bcode 101\b.*\breceived (\d{3})\b/.exec(error.message) ?? [];
  if (status !== undefined) return `: its proxy answers with ${status}, and opens no WebSocket`;
  const code = "code" in error ? String(error.code) : "";
  if (!/^[A-Z][A-Z_]+$/.test(code)) return "";
  return isOfFile(error, code)
    ? `: the file of sslrootcert, sslcert or sslkey cannot be read (${code})`
    : ` (${code})`;
}

/** A Unix socket that is not there has the same codes. */
function isOfFile(error: Error, code: string): boolean {
  const isConnecting = "syscall" in error && error.syscall === "connect";
  return /^(?:ENOENT|EACCES|EISDIR|ENOTDIR)$/.test(code) && !isConnecting;
}

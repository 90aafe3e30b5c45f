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

/** It did not open, or ended before anything was said. */
export class WebSocketFailed extends Error {
  override readonly name = "WebSocketFailed";

  constructor(cause: unknown) {
    super("The WebSocket failed.", { cause });
  }
}

/** What the machine, or TLS, says of it; what Postgres says is a SQLSTATE. */
function why(error: unknown): string {
  if (!(error instanceof Error)) return "";
  if (error instanceof WebSocketFailed) return `: no WebSocket opens${statusIn(error.cause)}`;
  if (error.message.includes("does not support SSL")) {
    return ": it offers no TLS, and sslmode asks for it";
  }
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

/** As workerd words it. */
function statusIn(error: unknown): string {
  const words = error instanceof Error ? error.message : "";
  const status = /\bcode 101\b.*\breceived (\d{3})\b/.exec(words)?.[1];
  return status === undefined ? "" : `, its proxy answers with ${status}`;
}

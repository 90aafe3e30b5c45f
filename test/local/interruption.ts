/** Whatever may end a run from outside, as one signal, so that it can end what it started. */
import { constants } from "node:os";
import { onNpmEnd } from "./processes.ts";

/**
 * Aborted by the first signal of a terminal or of npm, or when nobody reads the output any more;
 * `process.exitCode` then says which it was. npm passes a terminal's Ctrl-C on a second time, and
 * people press it again: later ones change nothing.
 */
export function interruption(): AbortSignal {
  const controller = new AbortController();
  const interrupt = (exitCode: number): void => {
    process.exitCode ??= exitCode;
    controller.abort();
  };
  for (const name of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
    process.on(name, () => interrupt(128 + constants.signals[name]));
  }
  onNpmEnd(() => interrupt(128 + constants.signals.SIGTERM));
  // A terminal that was closed, or `| head`.
  process.stdout.on("error", () => interrupt(1));
  process.stderr.on("error", () => interrupt(1));
  return controller.signal;
}

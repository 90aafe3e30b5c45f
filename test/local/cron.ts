/**
 * The Cron Trigger of a Worker on this machine: `wrangler dev` has a route for it, and calls it
 * never. Here it is called every minute, and by an audit that finds something left over.
 */
import { setTimeout as pause } from "node:timers/promises";

const MINUTE_MS = 60_000;
/** More than the budget of a tick, and what it may take to end its last event. */
const TIMEOUT_MS = 120_000;

/** Where a tick can be called; only on a machine like this one, never of a deployed Worker. */
export function tickUrl(url: string): string {
  return new URL("/cdn-cgi/handler/scheduled?cron=*+*+*+*+*", url).href;
}

/** One tick, to its end. Returns what went wrong, else null; rejects only when aborted. */
export async function callTick(url: string, signal?: AbortSignal): Promise<string | null> {
  const timeout = AbortSignal.timeout(TIMEOUT_MS);
  try {
    const response = await fetch(tickUrl(url), {
      redirect: "manual",
      signal: signal ? AbortSignal.any([signal, timeout]) : timeout,
    });
    await response.body?.cancel();
    return response.ok ? null : `status ${response.status}`;
  } catch (error) {
    signal?.throwIfAborted();
    return error instanceof Error && error.name === "TimeoutError"
      ? "no answer in time"
      : "no connection";
  }
}

/** A tick at the beginning of each minute, until aborted; one that fails is a line. Never rejects. */
export async function tickEveryMinute(
  url: string,
  { say, signal }: { say: (line: string) => void; signal: AbortSignal },
): Promise<void> {
  try {
    for (;;) {
      await pause(MINUTE_MS - (Date.now() % MINUTE_MS), undefined, { signal });
      const failure = await callTick(url, signal);
      if (failure !== null) say(`The cron's tick failed: ${failure}.`);
    }
  } catch (error) {
    if (!signal.aborted) say(`The cron ended: ${String(error)}.`);
  }
}

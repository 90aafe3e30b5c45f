/** Calls to Stripe that may wait: what is refused for now, or fails, is tried again. */
import { setTimeout as pause } from "node:timers/promises";
import { CallFailed } from "../stripe/call-failed.ts";
import type { InvoiceLists } from "../stripe/lists.ts";

const TRIES = 6;
const FIRST_PAUSE_SECONDS = 1;

export function patiently({ created, read }: InvoiceLists): InvoiceLists {
  return {
    created: (since, after) => withPatience(() => created(since, after)),
    read: (id) => withPatience(() => read(id)),
  };
}

/** @throws CallFailed, refused at once, or the last of them. */
async function withPatience<T>(call: () => Promise<T>): Promise<T> {
  for (let tried = 1; ; tried++) {
    try {
      return await call();
    } catch (error) {
      // Our key does not get better by waiting, either.
      const isFinal =
        !(error instanceof CallFailed) || error.kind === "refused" || error.kind === "no access";
      if (isFinal || tried === TRIES) throw error;
      const seconds = error.retryAfterSeconds ?? FIRST_PAUSE_SECONDS * 2 ** (tried - 1);
      console.error(`${error.code}: asked again in ${seconds} s.`);
      await pause(seconds * 1_000);
    }
  }
}

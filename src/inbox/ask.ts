/**
 * Asks handlers for their writes with no transaction to read in: what is decided without a question
 * can be written together with the mark, and with what other events write.
 */
import type { Connection, Write } from "../db/connect.ts";
import type { VerifiedEvent } from "../stripe/verify.ts";
import { askHandler, type Handler } from "./handler.ts";

/** What a handler answered; null: it reads, and must be asked with a transaction of its own. */
export type Asked = { readonly writes: readonly Write[] } | { readonly error: unknown } | null;

export type Ask = (handler: Handler, event: VerifiedEvent, withinMs: number) => Promise<Asked>;

/** Handlers that were seen to read: as long as the isolate lives, they are not asked in vain again. */
const readers = new WeakSet<Handler>();

export async function withoutReading<T>(db: Connection, use: (ask: Ask) => Promise<T>): Promise<T> {
  let reads = false;
  const { tx, end } = db.openTx(() => {
    reads = true;
    throw new TypeError("A handler that reads is asked in a transaction of its own.");
  });
  const ask: Ask = async (handler, event, withinMs) => {
    if (readers.has(handler)) return null;
    reads = false;
    const asked = await askHandler(handler, event, tx, withinMs).then(
      (writes) => ({ writes }),
      (error: unknown) => ({ error }),
    );
    if (reads) readers.add(handler);
    return reads ? null : asked;
  };
  try {
    return await use(ask);
  } finally {
    end();
  }
}

/**
 * A write that is made of one row, and can be made of many at once: where several events are
 * processed together, one statement writes what all of them have to write.
 *
 * It extends Drizzle's own promise, so that one which is forgotten is a lint error, like any query.
 */
import { QueryPromise, type SQL, type SQLWrapper } from "drizzle-orm";
import type { Tx, Write } from "./connect.ts";

/** What is written of rows of one kind, however many they are. */
export interface RowStatement<Row> {
  /** What a row is about: no two rows of one statement are about the same. */
  readonly keyOf: (row: Row) => string;
  /** @param rows sorted by key, so that statements which run at the same time cannot deadlock. */
  readonly write: (rows: readonly Row[]) => Write;
}

export class RowWrite<Row> extends QueryPromise<unknown> implements SQLWrapper {
  readonly #tx: Tx;
  readonly #statement: RowStatement<Row>;
  readonly #row: Row;

  constructor(tx: Tx, statement: RowStatement<Row>, row: Row) {
    super();
    this.#tx = tx;
    this.#statement = statement;
    this.#row = row;
  }

  /** One statement for as many of the writes as it can hold; the others are left. */
  static merge(writes: readonly RowWrite<unknown>[]): { merged: Write; left: RowWrite<unknown>[] } {
    const rows = new Map<string, unknown>();
    const [first] = writes;
    if (!first) throw new Error("Bug! Nothing to merge.");
    const { keyOf, write } = first.#statement;
    const left = writes.filter((one) => {
      const key = keyOf(one.#row);
      if (one.#statement !== first.#statement || rows.has(key)) return true;
      rows.set(key, one.#row);
      return false;
    });
    const sorted = [...rows].toSorted(([a], [b]) => (a < b ? -1 : 1));
    return { merged: write(sorted.map(([, row]) => row)), left };
  }

  /** The statement for it alone. */
  get alone(): Write {
    return this.#statement.write([this.#row]);
  }

  getSQL(): SQL {
    return this.alone.getSQL();
  }

  execute(): Promise<unknown> {
    return this.#tx.execute(this.getSQL()).execute();
  }
}

/**
 * What several events write, in as few statements as it can be done in. An event's only write may
 * share a statement with others; of one that has several, nothing comes between them.
 *
 * @param writes of each event, in their order.
 */
export function mergeWrites(writes: readonly (readonly Write[])[]): Write[] {
  const only = writes.filter(({ length }) => length === 1).flat();
  const several = writes.filter(({ length }) => length > 1).flat();
  const merged = only.filter((write) => !(write instanceof RowWrite));
  let left = only.filter((write): write is RowWrite<unknown> => write instanceof RowWrite);
  while (left.length > 0) {
    const next = RowWrite.merge(left);
    merged.push(next.merged);
    ({ left } = next);
  }
  return [...merged, ...several];
}

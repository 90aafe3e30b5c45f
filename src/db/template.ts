/**
 * A statement whose text is the same every time: written once, and then filled. Drizzle takes longer
 * to write out a long statement than Postgres to run it.
 */
import { type Placeholder, type SQL, sql, type SQLWrapper } from "drizzle-orm";

/** In the text, each value or its place. */
export type Places<V extends object> = { readonly [Name in keyof V]: V[Name] | Placeholder };

export class Filled implements SQLWrapper {
  /** Whether its plan is the same whatever the tables hold, and worth keeping. */
  readonly keepsPlan: boolean;
  /** With a place for each value; the same object for all that are filled from one template. */
  readonly text: SQL;
  /** By the name of their place. */
  readonly values: Readonly<Record<string, unknown>>;
  readonly #write: () => SQL;

  constructor(text: SQL, values: object, keepsPlan: boolean, write: () => SQL) {
    this.text = text;
    this.keepsPlan = keepsPlan;
    this.values = { ...values };
    this.#write = write;
  }

  getSQL(): SQL {
    return this.#write();
  }

  /** What Drizzle asks of a wrapper that stands within another statement, such as `with … as (…)`. */
  shouldOmitSQLParens(): boolean {
    return true;
  }
}

/** @param write must write the same text whatever the values are. */
export function template<V extends object>(
  write: (places: Places<V>) => SQL,
): (values: V) => Filled {
  return filling(write, false);
}

/**
 * The same, of a statement that finds rows through `on conflict` alone. Postgres may keep its plan for
 * as long as it likes: where one looks a row up, what was best while the table was small, to read
 * all of it, would stay.
 */
export function preparedTemplate<V extends object>(
  write: (places: Places<V>) => SQL,
): (values: V) => Filled {
  return filling(write, true);
}

function filling<V extends object>(
  write: (places: Places<V>) => SQL,
  keepsPlan: boolean,
): (values: V) => Filled {
  let withPlaces: SQL | undefined;
  return (values) => {
    withPlaces ??= write(placesOf(values));
    return new Filled(withPlaces, values, keepsPlan, () => write(values));
  };
}

function placesOf<V extends object>(values: V): Places<V> {
  const places = Object.keys(values).map((name) => [name, sql.placeholder(name)]);
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- One place for each of its names.
  return Object.fromEntries(places) as Places<V>;
}

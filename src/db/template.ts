/**
 * A statement whose text is the same every time: written once, and then filled. Drizzle takes longer
 * to write out a long statement than Postgres to run it.
 */
import { type Placeholder, type SQL, sql, type SQLWrapper } from "drizzle-orm";

/** In the text, each value or its place. */
export type Places<V extends object> = { readonly [Name in keyof V]: V[Name] | Placeholder };

export class Filled implements SQLWrapper {
  /** With a place for each value; the same object for all that are filled from one template. */
  readonly text: SQL;
  /** By the name of their place. */
  readonly values: Readonly<Record<string, unknown>>;
  readonly #write: () => SQL;

  constructor(text: SQL, values: object, write: () => SQL) {
    this.text = text;
    this.values = { ...values };
    this.#write = write;
  }

  getSQL(): SQL {
    return this.#write();
  }
}

/** @param write must write the same text whatever the values are. */
export function template<V extends object>(
  write: (places: Places<V>) => SQL,
): (values: V) => Filled {
  let withPlaces: SQL | undefined;
  return (values) => {
    withPlaces ??= write(placesOf(values));
    return new Filled(withPlaces, values, () => write(values));
  };
}

function placesOf<V extends object>(values: V): Places<V> {
  const places = Object.keys(values).map((name) => [name, sql.placeholder(name)]);
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- One place for each of its names.
  return Object.fromEntries(places) as Places<V>;
}

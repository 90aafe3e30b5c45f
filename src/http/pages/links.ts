/** Where links lead. */

/** What a page is asked, by its URL. */
export type Query = Readonly<Record<string, string>>;

/** A path of ours with a query. Ids travel in the query: of `..` or `a/b`, a path would lose its way. */
export function hrefOf(
  path: string,
  query: Readonly<Record<string, string | number | undefined>>,
): string {
  const given = Object.entries(query).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, String(value)] as [string, string]],
  );
  return given.length === 0 ? path : `${path}?${new URLSearchParams(given).toString()}`;
}

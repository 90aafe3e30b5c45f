/** What becomes of `wrangler.toml` here, and before a deploy, where Neon is reached without Hyperdrive. */
import { join } from "node:path";
import { ROOT } from "./run-file.ts";

/**
 * For a Worker on this machine, whose database is a local one whatever is deployed.
 *
 * @param toml as it is shipped, or without `[[hyperdrive]]` and `[alias]`.
 * @returns null: it will do as it is. Otherwise a text for another folder: its paths are absolute.
 */
export function withLocalDatabase(toml: string): string | null {
  if (/^\s*\[\[hyperdrive\]\]/m.test(toml)) return null;
  const main = JSON.stringify(join(ROOT, "src/index.ts"));
  const paths = toml.replace(/^main = .*$/m, `main = ${main}`).replaceAll('"./', `"${ROOT}/`);
  return `${paths}\n[[hyperdrive]]\nbinding = "HYPERDRIVE"\nid = "local"\n`;
}

/** What wrangler makes of the file. */
interface Deployed {
  readonly hyperdrive: readonly unknown[];
  readonly alias?: Readonly<Record<string, string>> | undefined;
}

/** Why a Worker that is deployed so would reach no database; null: nothing is known against it. */
export function whyUnreachable({ hyperdrive, alias }: Deployed): string | null {
  const isLeftOut = alias?.["@neondatabase/serverless"] !== undefined;
  return hyperdrive.length === 0 && isLeftOut
    ? "wrangler.toml has no [[hyperdrive]], and its [alias] leaves Neon's driver out: take that out as well."
    : null;
}

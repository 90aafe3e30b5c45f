/** What becomes of `wrangler.toml` here, and before a deploy, where Neon is reached without Hyperdrive. */
import { join } from "node:path";
import { parseArgs } from "node:util";
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
  readonly hyperdrive: readonly { readonly id?: string | undefined }[];
  readonly alias?: Readonly<Record<string, string>> | undefined;
}

/** Of no Hyperdrive: what stands in wrangler.toml until there is one. */
const NO_ID = "0".repeat(32);

/**
 * Why a Worker that is deployed so would reach no database; null: nothing is known against it.
 *
 * @param isDryRun then the id may still be none.
 * @param environment "" is the top level.
 */
export function whyUnreachable(
  { hyperdrive, alias }: Deployed,
  isDryRun: boolean,
  environment = "production",
): string | null {
  const table = environment === "" ? "[[hyperdrive]]" : `[[env.${environment}.hyperdrive]]`;
  const isLeftOut = alias?.["@neondatabase/serverless"] !== undefined;
  if (hyperdrive.length === 0 && isLeftOut) {
    return `wrangler.toml has no ${table}, and its [alias] leaves Neon's driver out: take that out as well.`;
  }
  if (!isDryRun && hyperdrive.some(({ id }) => id === NO_ID)) {
    return `The id of ${table} in wrangler.toml is none: put in what "npx wrangler hyperdrive create" printed.`;
  }
  return null;
}

/** Of the flags for wrangler, those that matter here, or whose values could be taken for one. */
function flagsIn(args: readonly string[]) {
  const text = { type: "string" } as const;
  const { values } = parseArgs({
    args: [...args],
    options: {
      env: { ...text, short: "e" },
      message: text,
      tag: text,
      help: { type: "boolean", short: "h" },
    },
    strict: false,
  });
  return values;
}

export function isAskedForHelp(flags: readonly string[]): boolean {
  return flagsIn(flags).help === true;
}

/**
 * Which environment is meant: `--env`, else CLOUDFLARE_ENV, else production; the top level, "", where
 * Workers Builds deploys what the button made, and has put its ids in there.
 */
export function environmentOf(
  flags: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): string {
  const given = flagsIn(flags).env;
  if (typeof given === "string") return given;
  return env["CLOUDFLARE_ENV"] ?? (env["WORKERS_CI"] === undefined ? "production" : "");
}

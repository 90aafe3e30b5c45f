/** Whoever goes without Hyperdrive takes two tables out of wrangler.toml, or forgets one of them. */
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { isAbsolute, join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { unstable_readConfig as readConfig } from "wrangler";
import { ROOT } from "./run-file.ts";
import { whyUnreachable, withLocalDatabase } from "./wrangler-config.ts";

const SHIPPED = readFileSync(join(ROOT, "wrangler.toml"), "utf8");
const folder = mkdtempSync(join(tmpdir(), "wrangler-config-"));
afterAll(() => rmSync(folder, { recursive: true }));

/** A table ends with the blank line behind it. */
function without(...tables: string[]): string {
  return tables.reduce((toml, table) => {
    const start = toml.indexOf(`\n${table}\n`) + 1;
    expect(start).toBeGreaterThan(0);
    return toml.slice(0, start) + toml.slice(toml.indexOf("\n\n", start));
  }, SHIPPED);
}

/** As wrangler reads it, in another folder. */
function read(toml: string) {
  const config = join(folder, "wrangler.toml");
  writeFileSync(config, toml);
  return readConfig({ config }, { hideWarnings: true });
}

test.each([
  ["as it is shipped", SHIPPED, null],
  ["without both", without("[[hyperdrive]]", "[alias]"), null],
  ["without [alias]", without("[alias]"), null],
  ["without [[hyperdrive]]", without("[[hyperdrive]]"), "take that out as well"],
])("%s, it is deployed or refused", (_, toml, refusal) => {
  const why = whyUnreachable(read(toml));
  if (refusal === null) expect(why).toBeNull();
  else expect(why).toContain(refusal);
});

test("as it is shipped, it will do on this machine", () => {
  expect(withLocalDatabase(SHIPPED)).toBeNull();
  expect(withLocalDatabase(without("[alias]"))).toBeNull();
});

test.each([
  ["both", without("[[hyperdrive]]", "[alias]")],
  ["[[hyperdrive]]", without("[[hyperdrive]]")],
])("without %s, a Worker on this machine has its database all the same", (_, toml) => {
  const shipped = read(SHIPPED);
  const { hyperdrive, main, alias = {}, queues, triggers } = read(withLocalDatabase(toml) ?? "");
  expect(hyperdrive).toMatchObject([{ binding: "HYPERDRIVE" }]);
  for (const path of [main ?? "", ...Object.values(alias)]) {
    expect(isAbsolute(path) && existsSync(path), path).toBe(true);
  }
  expect(queues).toEqual(shipped.queues);
  expect(triggers).toEqual(shipped.triggers);
});

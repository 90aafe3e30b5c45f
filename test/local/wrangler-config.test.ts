/** What wrangler.toml says for whom, and what becomes of it where somebody takes tables out. */
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { isAbsolute, join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { unstable_readConfig as readConfig } from "wrangler";
import { ROOT } from "./run-file.ts";
import {
  environmentOf,
  isAskedForHelp,
  whyUnreachable,
  withLocalDatabase,
} from "./wrangler-config.ts";

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
function read(toml: string, env?: string) {
  const config = join(folder, "wrangler.toml");
  writeFileSync(config, toml);
  return readConfig({ config, ...(env === undefined ? {} : { env }) }, { hideWarnings: true });
}

test("production is what the top level says", () => {
  const { hyperdrive, queues, vars, name, triggers, observability } = read(SHIPPED, "production");
  const top = read(SHIPPED);
  expect({ queues, vars, name, triggers, observability }).toEqual({
    queues: top.queues,
    vars: top.vars,
    name: top.name,
    triggers: top.triggers,
    observability: top.observability,
  });
  for (const road of [top.hyperdrive, hyperdrive]) {
    expect(road).toMatchObject([{ binding: "HYPERDRIVE" }]);
  }
});

test("staging is the same with queues of its own, and takes test events", () => {
  const staging = read(SHIPPED, "staging");
  const production = read(SHIPPED, "production");
  const renamed = JSON.stringify(production.queues).replaceAll(
    "stripe-inbox-",
    "stripe-inbox-staging-",
  );
  expect(staging.queues).toEqual(JSON.parse(renamed));
  expect(staging.vars).toEqual({ ...production.vars, STRIPE_LIVEMODE: "false" });
  expect(staging.name).not.toBe(production.name);
  expect(staging.hyperdrive).toMatchObject([{ binding: "HYPERDRIVE" }]);
});

test.each([
  [[], {}, "production"],
  [["--env", "staging", "--dry-run"], {}, "staging"],
  [["--env=staging"], { CLOUDFLARE_ENV: "production" }, "staging"],
  [["-e", "staging"], {}, "staging"],
  [["--dry-run"], { CLOUDFLARE_ENV: "staging" }, "staging"],
  [[], { WORKERS_CI: "1" }, ""],
])("%j with %j deploys %j", (flags, env, environment) => {
  expect(environmentOf(flags, env)).toBe(environment);
});

test.each(["production", "staging"])("%s is not deployed before it has a Hyperdrive", (env) => {
  const shipped = read(SHIPPED, env);
  expect(whyUnreachable(shipped, false)).toContain("npx wrangler hyperdrive create");
  expect(whyUnreachable(shipped, true)).toBeNull();
  const withId = SHIPPED.replaceAll("0".repeat(32), "a1b2c3d4e5f64a7b8c9d0e1f2a3b4c5d");
  expect(whyUnreachable(read(withId, env), false)).toBeNull();
});

const PRODUCTIONS = "[[env.production.hyperdrive]]";

test.each([
  ["as it is shipped", SHIPPED, null],
  ["without both", without(PRODUCTIONS, "[alias]"), null],
  ["without [alias]", without("[alias]"), null],
  ["without its [[hyperdrive]]", without(PRODUCTIONS), "take that out as well"],
])("%s, production is deployed or refused", (_, toml, refusal) => {
  const why = whyUnreachable(read(toml, "production"), true);
  if (refusal === null) expect(why).toBeNull();
  else expect(why).toContain(refusal);
});

test("a message is no call for help, nor is an environment's name; nor does a message name one", () => {
  expect(isAskedForHelp(["-enorth"])).toBe(false);
  expect(environmentOf(["-enorth"], {})).toBe("north");
  expect(environmentOf(["--message", "--env=x"], {})).toBe("production");
  expect(isAskedForHelp(["--message", "-h"])).toBe(false);
  expect(isAskedForHelp(["--env", "staging", "--message", "first", "--help"])).toBe(true);
});

test.each(["--help", "-h"])("asked for %s, the deploy tells, and does nothing", (flag) => {
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    [join(ROOT, "test/local/deploy.ts"), flag],
    { encoding: "utf8", env: { ...process.env, DATABASE_URL: "postgres://127.0.0.1:1/none" } },
  );
  expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
  expect(stdout).toContain("npm run deploy -- --env staging");
  expect(stdout).not.toContain("Migrating");
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

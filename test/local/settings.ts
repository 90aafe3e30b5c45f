/**
 * The Worker's settings on this machine: from the environment, else from `.dev.vars` (as
 * `wrangler dev` alone would read them), else made up where the simulated Stripe needs one.
 */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parseEnv } from "node:util";
import { ROOT } from "./run-file.ts";

/** What a setting of the Worker is called; the rest of the environment is none of its business. */
const SETTING = new RegExp(
  "^(STRIPE|RECEIVE|RETRY|BACKOFF|OPS|OUTBOX|RETENTION|TOMBSTONE|SWEEP|ALERT)_|" +
    "^(MAX_ATTEMPTS|LEASE_SECONDS|STATEMENT_TIMEOUT_MS|LOCK_TIMEOUT_MS|CLAIM_BATCH|CONCURRENCY|" +
    "TICK_BUDGET_SECONDS|PIPELINE|PREPARE|PROCESSING|PROCESS_BATCH)$",
);

/** Lets an operator in here. It is no secret, and only Workers on this machine take it. */
export const MADE_UP_OPS_TOKEN = "made-up-for-this-machine-and-for-no-other-one";

const MADE_UP = {
  STRIPE_LIVEMODE: "false",
  STRIPE_WEBHOOK_SECRET: "whsec_made_up_for_this_machine",
  STRIPE_CONNECT_WEBHOOK_SECRET: "whsec_made_up_for_connect",
  OPS_TOKEN: MADE_UP_OPS_TOKEN,
} as const;

/**
 * What a cut connection leaves behind is taken when its lease ends. A round that cuts some waits
 * for that, so leases end soon. They go together: each must be shorter than the one before.
 */
const SHORT_LEASE: Variables = {
  LEASE_SECONDS: "5",
  STATEMENT_TIMEOUT_MS: "2000",
  LOCK_TIMEOUT_MS: "1000",
};

type Variables = Readonly<Record<string, string | undefined>>;

/** The settings by name, ready to be handed to the Worker. */
export function localSettings(env: Variables = process.env): Record<string, string> {
  const file = join(ROOT, ".dev.vars");
  const inFile: Variables = existsSync(file) ? parseEnv(readFileSync(file, "utf8")) : {};
  // As the example has them, to be filled in.
  const devVars = Object.fromEntries(Object.entries(inFile).filter(([, value]) => value !== ""));
  const given = Object.entries(env).filter(([name]) => SETTING.test(name));
  const merged = { ...MADE_UP, ...devVars, ...Object.fromEntries(given) };
  return defined(merged);
}

/**
 * Why these would have made-up payments where real ones are: a database elsewhere, or a key of Stripe's live
 * mode; null: they would not. What is exported for one command is there for the next one, too.
 *
 * @param isForTests whether somebody said so of that database.
 */
export function whyDangerous(
  databaseUrl: string | undefined,
  settings: Variables,
  isForTests: boolean,
): string | null {
  if (/_live_/.test(settings["STRIPE_API_KEY"] ?? "")) {
    return "STRIPE_API_KEY is of Stripe's live mode, and what happens here is made up: unset it.";
  }
  const url = URL.parse(databaseUrl ?? "");
  const host = url?.searchParams.get("host") ?? url?.hostname ?? "";
  const isHere = /^(?:|localhost|127(?:\.\d+){3}|\[::1\]|\/.*)$/i.test(host);
  if (isHere || isForTests) return null;
  return `DATABASE_URL leads to ${host}, and what happens here is made up: unset it, or say -- --database-is-for-tests.`;
}

/** The same with short leases, unless something was said about them. */
export function withShortLease(settings: Variables): Record<string, string> {
  const said = Object.keys(SHORT_LEASE).some((name) => settings[name] !== undefined);
  return defined(said ? settings : { ...settings, ...SHORT_LEASE });
}

function defined(variables: Variables): Record<string, string> {
  return Object.fromEntries(
    Object.entries(variables).flatMap(([name, value]) =>
      value === undefined ? [] : [[name, value]],
    ),
  );
}

/** What the simulated Stripe must know of the endpoints: a secret each, and the livemode rule. */
export function accountOf(settings: Variables) {
  return {
    secrets: {
      billing: firstSecret(settings["STRIPE_WEBHOOK_SECRET"]),
      connect: firstSecret(settings["STRIPE_CONNECT_WEBHOOK_SECRET"]),
    },
    livemode: settings["STRIPE_LIVEMODE"] ? settings["STRIPE_LIVEMODE"] === "true" : null,
  };
}

/** A binding may hold several secrets while one is being rolled; Stripe then signs with any. */
function firstSecret(binding = ""): string {
  return binding.split(/[\s,]+/).find((secret) => secret !== "") ?? "";
}

/**
 * Bindings and vars, validated. The only reader of the Worker's environment.
 * A setting that is present and wrong is refused by name: never replaced by its default.
 * Long, because every setting is to be found in one place.
 */
import * as v from "valibot";
import type { Database } from "./db/connect.ts";
import { parseConnectionString } from "./db/connection-string.ts";

/** A setting that is missing or unusable. The message names it and never repeats its value. */
export class InvalidSetting extends Error {
  override readonly name = "InvalidSetting";

  readonly setting: string;

  constructor(setting: string, problem: string) {
    super(`${setting} ${problem}`);
    this.setting = setting;
  }
}

/** `wrangler.toml` also has numbers and booleans. */
const Text = v.pipe(v.union([v.string(), v.number(), v.boolean()]), v.transform(String));

export const wholeNumber = (unit: string, min: number, max: number) =>
  v.pipe(
    Text,
    v.regex(/^\d{1,9}$/),
    v.transform(Number),
    v.minValue(min),
    v.maxValue(max),
    v.description(`must be a whole number of ${unit} from ${min} to ${max}`),
  );

const oneOf = <const Options extends readonly string[]>(...options: Options) =>
  v.pipe(Text, v.picklist(options), v.description(`must be ${options.join(" or ")}`));

const Vars = v.object({
  STRIPE_LIVEMODE: v.optional(oneOf("true", "false")),
  RECEIVE_MODE: v.optional(oneOf("sync", "async"), "sync"),
  /** The brake for a bad deploy: `paused` stores every event and processes none. */
  PROCESSING: v.optional(oneOf("on", "paused"), "on"),
  /** How old, or how far ahead, a signature may be: Stripe's own default. */
  STRIPE_WEBHOOK_TOLERANCE_SECONDS: v.optional(wholeNumber("seconds", 1, 86_400), "300"),
  /** Short enough for one wait to be followed by one retry before the deadline. */
  RECEIVE_LOCK_TIMEOUT_MS: v.optional(wholeNumber("milliseconds", 1, 8_000), "3000"),
  RECEIVE_STATEMENT_TIMEOUT_MS: v.optional(wholeNumber("milliseconds", 1, 8_000), "5000"),
  MAX_ATTEMPTS: v.optional(wholeNumber("attempts", 1, 1_000), "10"),
  BACKOFF_CAP_SECONDS: v.optional(wholeNumber("seconds", 1, 86_400), "300"),
  /** How long a claim is good for: who died with it is waited for no longer. */
  // Of less, nothing is left to work in: failures are recorded within it, too.
  LEASE_SECONDS: v.optional(wholeNumber("seconds", 3, 3_600), "120"),
  STATEMENT_TIMEOUT_MS: v.optional(wholeNumber("milliseconds", 1, 3_600_000), "30000"),
  LOCK_TIMEOUT_MS: v.optional(wholeNumber("milliseconds", 1, 3_600_000), "10000"),
  /** Events in one claim; those that a tick does not come to are given back. */
  CLAIM_BATCH: v.optional(wholeNumber("events", 1, 1_000), "50"),
  /** `off` gives each event a transaction of its own from the start. */
  PROCESS_BATCH: v.optional(oneOf("on", "off"), "on"),
  /** A Worker has six connections at a time. */
  CONCURRENCY: v.optional(wholeNumber("connections", 1, 6), "5"),
  /** Less than the minute until the next tick, though two at once do no harm. */
  TICK_BUDGET_SECONDS: v.optional(wholeNumber("seconds", 1, 600), "50"),
  /** Stripe's manual resend and its list of events reach 30 days back. */
  RETENTION_DAYS: v.optional(wholeNumber("days", 1, 36_500), "30"),
  /** Until then, an event that comes again is still known by its key. */
  TOMBSTONE_DAYS: v.optional(wholeNumber("days", 1, 36_500), "90"),
  /** How often Stripe's list of events is swept, where STRIPE_API_KEY is set; 0: never. */
  SWEEP_INTERVAL_MINUTES: v.optional(wholeNumber("minutes", 0, 10_080), "60"),
  /** Whose lists are swept, beside that of the key's own account. */
  STRIPE_CONNECTED_ACCOUNTS: v.optional(
    v.pipe(
      Text,
      v.transform((text) => text.split(/[\s,]+/).filter(Boolean)),
      v.everyItem((id) => /^acct_[a-zA-Z0-9]{1,64}$/.test(id)),
      v.description("must be ids of accounts (acct_…), separated by commas"),
    ),
    "",
  ),
  /** What was created before is not looked for. */
  SWEEP_SINCE: v.optional(
    v.pipe(
      Text,
      v.isoDate(),
      v.transform((text) => new Date(text)),
      v.description("must be a date such as 2026-11-29"),
    ),
  ),
  /** `off` sends statements one by one, for a pooler that objects to pipelining. */
  PIPELINE: v.optional(oneOf("on", "off"), "on"),
  /** `off` has no statement prepared, for a pooler that keeps no account of their names. */
  PREPARE: v.optional(oneOf("on", "off"), "on"),
});

/** Stripe lists the events of so many days: https://docs.stripe.com/api/events/list */
const LISTED_DAYS = 30;

/** A producer of Cloudflare Queues. */
export interface Queue {
  readonly sendBatch: (messages: Iterable<{ readonly body: unknown }>) => Promise<unknown>;
}

const QueueBinding = v.custom<Queue>(
  (binding) =>
    typeof binding === "object" &&
    binding !== null &&
    "sendBatch" in binding &&
    typeof binding.sendBatch === "function",
);

const Hyperdrive = v.object({ connectionString: v.pipe(v.string(), v.minLength(1)) });

export type ReceiveMode = "sync" | "async";

export type Env = Readonly<Record<string, unknown>>;

export interface Settings {
  readonly database: Database;
  /** What an endpoint that says nothing itself accepts; null accepts both. */
  readonly livemode: boolean | null;
  readonly mode: ReceiveMode;
  /** False: store only, everywhere, and let the ticks process nothing. */
  readonly processing: boolean;
  readonly toleranceSeconds: number;
  readonly receive: { readonly lockTimeoutMs: number; readonly statementTimeoutMs: number };
  readonly process: {
    readonly leaseSeconds: number;
    readonly timeouts: { readonly lockTimeoutMs: number; readonly statementTimeoutMs: number };
    readonly claimBatch: number;
    /** Whether events that are new are processed together, in the hope that none fails. */
    readonly batches: boolean;
    readonly concurrency: number;
    readonly tickBudgetMs: number;
  };
  readonly retention: { readonly payloadDays: number; readonly tombstoneDays: number };
  /** How messages leave; null where no queue is bound: they wait. */
  readonly dispatch: {
    readonly queue: Queue;
    readonly leaseSeconds: number;
    readonly maxAttempts: number;
    readonly backoffCapSeconds: number;
  } | null;
  /** How what was missed is found; null where no API key is set, or it is switched off. */
  readonly sweep: {
    readonly api: StripeApi;
    readonly intervalMinutes: number;
    readonly since: Date | null;
    readonly connectedAccounts: readonly string[];
    readonly reachDays: number;
  } | null;
  readonly retry: { readonly maxAttempts: number; readonly backoffCapSeconds: number };
}

/** @throws InvalidSetting naming the first setting that is wrong. */
export function readSettings(env: Env): Settings {
  const settings = readVars(env);
  assertTogether(settings);
  const queue = readQueue(env);
  const retry = {
    maxAttempts: settings.MAX_ATTEMPTS,
    backoffCapSeconds: settings.BACKOFF_CAP_SECONDS,
  };
  return {
    database: {
      ...readRoad(env),
      pipeline: isPipelined(settings),
      prepare: settings.PREPARE === "on",
    },
    livemode: settings.STRIPE_LIVEMODE === undefined ? null : settings.STRIPE_LIVEMODE === "true",
    mode: settings.RECEIVE_MODE,
    processing: settings.PROCESSING === "on",
    toleranceSeconds: settings.STRIPE_WEBHOOK_TOLERANCE_SECONDS,
    receive: {
      lockTimeoutMs: settings.RECEIVE_LOCK_TIMEOUT_MS,
      statementTimeoutMs: settings.RECEIVE_STATEMENT_TIMEOUT_MS,
    },
    process: {
      leaseSeconds: settings.LEASE_SECONDS,
      timeouts: {
        lockTimeoutMs: settings.LOCK_TIMEOUT_MS,
        statementTimeoutMs: settings.STATEMENT_TIMEOUT_MS,
      },
      claimBatch: settings.CLAIM_BATCH,
      batches: settings.PROCESS_BATCH === "on",
      concurrency: settings.CONCURRENCY,
      tickBudgetMs: settings.TICK_BUDGET_SECONDS * 1_000,
    },
    retention: { payloadDays: settings.RETENTION_DAYS, tombstoneDays: settings.TOMBSTONE_DAYS },
    sweep: readSweep(env, settings),
    dispatch: queue && { queue, leaseSeconds: settings.LEASE_SECONDS, ...retry },
    retry,
  };
}

/**
 * The way to the database alone, whatever else is wrong.
 *
 * @throws InvalidSetting
 */
export function readDatabase(env: Env): Database {
  const pipeline = v.safeParse(Vars.entries.PIPELINE, env["PIPELINE"]);
  if (!pipeline.success) throw new InvalidSetting("PIPELINE", expectation("PIPELINE"));
  return {
    ...readRoad(env),
    pipeline: isPipelined({ PIPELINE: pipeline.output }),
  };
}

function isPipelined({ PIPELINE }: Pick<v.InferOutput<typeof Vars>, "PIPELINE">): boolean {
  return PIPELINE === "on";
}

/** @throws InvalidSetting */
export function readVar(
  env: Env,
  name: string,
  schema: ReturnType<typeof wholeNumber>,
  byDefault: string,
): number {
  const value = v.safeParse(schema, env[name] ?? byDefault);
  if (value.success) return value.output;
  throw new InvalidSetting(name, v.getDescription(schema) ?? "is not usable");
}

/** By the environment itself, which is the same object for every request of an isolate. */
const varsOf = new WeakMap<Env, v.InferOutput<typeof Vars>>();

function readVars(env: Env): v.InferOutput<typeof Vars> {
  const before = varsOf.get(env);
  if (before) return before;
  const vars = v.safeParse(Vars, env);
  if (vars.success) {
    varsOf.set(env, vars.output);
    return vars.output;
  }
  const setting = String(vars.issues[0].path?.[0].key);
  throw new InvalidSetting(setting, expectation(setting));
}

/**
 * What no single setting shows. A wait for somebody else's lock must not end as a statement of
 * ours that took too long, and a statement that outlives its lease works for nothing.
 */
function assertTogether(vars: v.InferOutput<typeof Vars>): void {
  const shorter = [
    [
      "RECEIVE_LOCK_TIMEOUT_MS",
      vars.RECEIVE_LOCK_TIMEOUT_MS,
      "RECEIVE_STATEMENT_TIMEOUT_MS",
      vars.RECEIVE_STATEMENT_TIMEOUT_MS,
    ],
    ["LOCK_TIMEOUT_MS", vars.LOCK_TIMEOUT_MS, "STATEMENT_TIMEOUT_MS", vars.STATEMENT_TIMEOUT_MS],
    [
      "STATEMENT_TIMEOUT_MS",
      vars.STATEMENT_TIMEOUT_MS,
      "LEASE_SECONDS",
      vars.LEASE_SECONDS * 1_000,
    ],
  ] as const;
  for (const [name, ms, other, limitMs] of shorter) {
    if (ms >= limitMs) throw new InvalidSetting(name, `must be less than ${other}`);
  }
  if (vars.TOMBSTONE_DAYS < vars.RETENTION_DAYS) {
    throw new InvalidSetting("TOMBSTONE_DAYS", "must not be less than RETENTION_DAYS");
  }
}

/**
 * The signing secrets held by a binding: one, or several while one is being rolled,
 * separated by commas or white space.
 *
 * @throws InvalidSetting when there is none.
 */
export function readSecrets(env: Env, binding: string): readonly [string, ...string[]] {
  const value = env[binding];
  const [first, ...others] = typeof value === "string" ? value.split(/[\s,]+/).filter(Boolean) : [];
  if (first === undefined) {
    throw new InvalidSetting(
      binding,
      "holds no signing secret: set it with `npx wrangler secret put`",
    );
  }
  return [first, ...others];
}

/** How Stripe's API is reached. */
export interface StripeApi {
  readonly key: string;
  /** Null: Stripe's own. */
  readonly url: URL | null;
}

/** Without one, or with an empty one, Stripe is asked and told nothing; deliveries need none. */
export function hasStripeApiKey(env: Env): boolean {
  const key = env["STRIPE_API_KEY"];
  return key !== undefined && !(typeof key === "string" && key.trim() === "");
}

/** @throws InvalidSetting */
export function readStripeApi(env: Env): StripeApi {
  const key = v.safeParse(v.pipe(v.string(), v.trim(), v.minLength(1)), env["STRIPE_API_KEY"]);
  if (!key.success) {
    throw new InvalidSetting(
      "STRIPE_API_KEY",
      hasStripeApiKey(env)
        ? "must be a text"
        : "is not set: with it, Stripe is told what follows from a booked payment, and asked what was missed",
    );
  }
  const given = env["STRIPE_API_URL"];
  if (given === undefined) return { key: key.output, url: null };
  const url = typeof given === "string" ? URL.parse(given) : null;
  if (!url || !/^https?:$/.test(url.protocol)) {
    throw new InvalidSetting("STRIPE_API_URL", "must be an http or https URL");
  }
  return { key: key.output, url };
}

/**
 * What a command of an operator needs to know of the Worker's settings.
 *
 * @throws InvalidSetting
 */
export function readAccount(env: Env): {
  readonly livemode: boolean | null;
  readonly connectedAccounts: readonly string[];
} {
  const { STRIPE_LIVEMODE, STRIPE_CONNECTED_ACCOUNTS } = readVars(env);
  return {
    livemode: STRIPE_LIVEMODE === undefined ? null : STRIPE_LIVEMODE === "true",
    connectedAccounts: STRIPE_CONNECTED_ACCOUNTS,
  };
}

function readSweep(env: Env, vars: v.InferOutput<typeof Vars>): Settings["sweep"] {
  if (!hasStripeApiKey(env) || vars.SWEEP_INTERVAL_MINUTES === 0) return null;
  return {
    api: readStripeApi(env),
    intervalMinutes: vars.SWEEP_INTERVAL_MINUTES,
    since: vars.SWEEP_SINCE ?? null,
    connectedAccounts: vars.STRIPE_CONNECTED_ACCOUNTS,
    // An event is known to be settled as long as its key is kept: a day less, to be sure.
    reachDays: Math.min(LISTED_DAYS, Math.max(1, vars.TOMBSTONE_DAYS - 1)),
  };
}

/** @throws InvalidSetting */
export function readQueue(env: Env): Queue | null {
  const binding = env["OUTBOX_QUEUE"];
  if (binding === undefined) return null;
  const queue = v.safeParse(QueueBinding, binding);
  if (!queue.success)
    throw new InvalidSetting("OUTBOX_QUEUE", "must be a queue: see wrangler.toml");
  return queue.output;
}

/** Hyperdrive where it is bound, even if DATABASE_URL is set as well; else a WebSocket. */
function readRoad(env: Env): Pick<Database, "connectionString" | "webSocket"> {
  if (env["HYPERDRIVE"] === undefined && env["DATABASE_URL"] !== undefined) {
    return { connectionString: readDatabaseUrl(env), webSocket: { proxy: readProxy(env) } };
  }
  const hyperdrive = v.safeParse(Hyperdrive, env["HYPERDRIVE"]);
  if (!hyperdrive.success) {
    throw new InvalidSetting(
      "HYPERDRIVE",
      "is not bound, and DATABASE_URL not set: see [[hyperdrive]] in wrangler.toml",
    );
  }
  return { connectionString: hyperdrive.output.connectionString };
}

/** Whether there is one, and Hyperdrive is bound as well. */
export function hasUnusedDatabaseUrl(env: Env): boolean {
  return env["HYPERDRIVE"] !== undefined && env["DATABASE_URL"] !== undefined;
}

function readDatabaseUrl(env: Env): string {
  const given = env["DATABASE_URL"];
  const text = typeof given === "string" ? given.trim() : "";
  const parts = parseConnectionString(text);
  if (parts && isWhole(parts)) return text;
  throw new InvalidSetting(
    "DATABASE_URL",
    "must be a connection string as Neon shows it, with role, password, host and database; what is special in them is percent-encoded",
  );
}

function isWhole({ hostname, username, password, pathname }: URL): boolean {
  return [hostname, username, password, pathname.slice(1)].every(Boolean);
}

/** Without TLS, a password would be there for everybody to read. What is behind the path is ours. */
function readProxy(env: Env): URL | null {
  const given = env["NEON_WS_PROXY"];
  if (given === undefined) return null;
  const url = typeof given === "string" ? URL.parse(given) : null;
  const isHere = url !== null && /^(?:127\.0\.0\.1|\[::1\]|localhost)$/.test(url.hostname);
  const isBare = url !== null && url.username + url.password + url.search + url.hash === "";
  if (isBare && (url.protocol === "wss:" || (isHere && url.protocol === "ws:"))) return url;
  throw new InvalidSetting(
    "NEON_WS_PROXY",
    "must be a wss:// URL of host and path alone; ws:// only leads to this very machine",
  );
}

function expectation(setting: string): string {
  const schema = Object.entries(Vars.entries).find(([name]) => name === setting)?.[1];
  return (schema && v.getDescription(schema.wrapped)) ?? "is not usable";
}

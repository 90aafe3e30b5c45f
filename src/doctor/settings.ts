/** What can be seen of the bindings, vars and secrets themselves. No value of one is ever repeated. */
import {
  type Env,
  hasStripeApiKey,
  hasUnusedDatabaseUrl,
  InvalidSetting,
  readDatabase,
  readQueue,
  readSecrets,
  readSettings,
  readStripeApi,
} from "../config.ts";
import { readAlerting } from "../config-operator.ts";
import type { Endpoint, Endpoints } from "../endpoints.ts";
import { fail, type Finding, ok, skipped, warn } from "./finding.ts";

const SIGNING_SECRET = /^whsec_[\w+/=-]{16,}$/;
const API_KEY = /^(?:sk|rk)(?:_org)?_(test|live)_\w{8,}$/;

export function examineSettings(endpoints: Endpoints, env: Env): readonly Finding[] {
  const tables = Object.entries(endpoints);
  const unusable = findUnusable(env);
  return [
    unusable === null
      ? ok("settings", "every setting is usable")
      : fail("settings", unusable.message, mend(unusable)),
    road(env),
    ...tables.map(([name, endpoint]) => secret(name, endpoint, env)),
    ...tables.map(([name, endpoint]) => livemode(name, endpoint, env)),
    apiKey(endpoints, env),
    queue(env),
    processing(env),
    alerts(env),
  ];
}

/** The first setting that keeps all others from being read; null: none does. */
export function findUnusable(env: Env): InvalidSetting | null {
  try {
    readSettings(env);
    return null;
  } catch (error) {
    if (!(error instanceof InvalidSetting)) throw error;
    return error;
  }
}

/** What cannot be looked at for a setting that is unusable: said once, where settings are. */
export function refused(check: string, env: Env, refusal: InvalidSetting): Finding {
  return findUnusable(env)?.setting === refusal.setting
    ? skipped(check, `${refusal.setting} is unusable: see settings`)
    : fail(check, refusal.message, mend(refusal));
}

const mend = ({ setting }: InvalidSetting): string => `Put ${setting} right, and deploy`;

const NEON_WITHOUT_POOLER = /^(?!.*-pooler\.).*\.neon\.tech$/;

/** How the database is reached. */
function road(env: Env): Finding {
  const check = "road to the database";
  return named(check, env, () => {
    const { connectionString, webSocket } = readDatabase(env);
    if (hasUnusedDatabaseUrl(env)) {
      return warn(
        check,
        "Hyperdrive; DATABASE_URL is set, too, and not used",
        "npx wrangler secret delete DATABASE_URL, or take [[hyperdrive]] and [alias] out of wrangler.toml",
      );
    }
    if (!webSocket) return ok(check, "Hyperdrive");
    if (!webSocket.proxy && NEON_WITHOUT_POOLER.test(new URL(connectionString).hostname)) {
      return warn(
        check,
        "DATABASE_URL leads past Neon's pooler, and each delivery takes a connection",
        "Take the host name with -pooler for it: npx wrangler secret put DATABASE_URL",
      );
    }
    if (!webSocket.proxy && !new URL(connectionString).hostname.endsWith(".neon.tech")) {
      return warn(
        check,
        "DATABASE_URL leads to a host that is not Neon's, through a WebSocket of Neon's driver",
        "Any other Postgres takes Hyperdrive, or a WebSocket proxy of your own: NEON_WS_PROXY",
      );
    }
    const by = webSocket.proxy ? "NEON_WS_PROXY" : "Neon's proxy";
    return ok(check, `DATABASE_URL, through a WebSocket of ${by}`);
  });
}

function secret(name: string, endpoint: Endpoint, env: Env): Finding {
  const check = `secret of ${name}`;
  const binding = endpoint.secrets;
  const set = `npx wrangler secret put ${binding}`;
  try {
    const secrets = readSecrets(env, binding);
    return secrets.every((one) => SIGNING_SECRET.test(one))
      ? ok(check, `${binding} holds ${secrets.length === 1 ? "one" : secrets.length}`)
      : fail(
          check,
          `${binding} holds what is no signing secret of Stripe's (whsec_…)`,
          `Copy it from the endpoint's page in Stripe: ${set}`,
        );
  } catch {
    const missing = `${binding} is not set: every delivery is answered with 503`;
    return hasAny({ ...endpoint.handlers, ...endpoint.thinHandlers })
      ? fail(check, missing, `${set}, with the signing secret of the endpoint's page in Stripe`)
      : warn(check, missing, `${set}, or take the endpoint out of src/endpoints.ts`);
  }
}

function livemode(name: string, endpoint: Endpoint, env: Env): Finding {
  const check = `livemode of ${name}`;
  return named(check, env, () => {
    const accepts = endpoint.livemode ?? readSettings(env).livemode;
    return accepts === null
      ? warn(
          check,
          "it takes events of live mode and of test mode alike",
          'Set STRIPE_LIVEMODE in wrangler.toml: "true" in production',
        )
      : ok(check, accepts ? "only events of live mode" : "only events of test mode");
  });
}

function hasAny(table: object | undefined): boolean {
  return table !== undefined && Object.keys(table).length > 0;
}

function apiKey(endpoints: Endpoints, env: Env): Finding {
  const check = "api key";
  const set = "npx wrangler secret put STRIPE_API_KEY";
  if (!hasStripeApiKey(env)) {
    const asking = Object.values(endpoints).some(({ thinHandlers }) => hasAny(thinHandlers));
    if (asking) {
      return fail(check, "STRIPE_API_KEY is not set: no thin notification is processed", set);
    }
    return warn(check, "STRIPE_API_KEY is not set: nothing is swept, Stripe is told nothing", set);
  }
  return named(check, env, () => {
    const { key } = readStripeApi(env);
    const mode = API_KEY.exec(key)?.[1];
    if (mode === undefined) {
      return fail(check, "STRIPE_API_KEY is no secret or restricted key (sk_…, rk_…)", set);
    }
    const { livemode: accepts } = readSettings(env);
    if (accepts !== null && accepts !== (mode === "live")) {
      const wanted = accepts ? "live" : "test";
      return fail(
        check,
        `STRIPE_API_KEY is of ${mode} mode, and STRIPE_LIVEMODE says ${String(accepts)}`,
        `${set}, with a key of ${wanted} mode`,
      );
    }
    return ok(check, `a key of ${mode} mode`);
  });
}

function queue(env: Env): Finding {
  return named("queue", env, () =>
    readQueue(env) === null
      ? fail(
          "queue",
          "OUTBOX_QUEUE is not bound: messages wait in the outbox",
          "npx wrangler queues create stripe-inbox-outbox, and bind it as in wrangler.toml",
        )
      : ok("queue", "OUTBOX_QUEUE is bound"),
  );
}

function processing(env: Env): Finding {
  return named("processing", env, () =>
    readSettings(env).processing
      ? ok("processing", "on")
      : warn(
          "processing",
          "paused: every event is stored, none is processed",
          'Set PROCESSING = "on" once the cause is mended',
        ),
  );
}

function alerts(env: Env): Finding {
  return named("alerts", env, () =>
    readAlerting(env).url === null
      ? warn(
          "alerts",
          "ALERT_URL is not set: alerts are in the log alone",
          "npx wrangler secret put ALERT_URL, or let Prometheus watch /metrics",
        )
      : ok("alerts", "ALERT_URL is set"),
  );
}

function named(check: string, env: Env, look: () => Finding): Finding {
  try {
    return look();
  } catch (error) {
    if (!(error instanceof InvalidSetting)) throw error;
    return refused(check, env, error);
  }
}

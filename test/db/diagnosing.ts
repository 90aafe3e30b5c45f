/** A deployment in which nothing is wrong, until a test plants a fault; and what its doctor says. */
import { expect, onTestFinished } from "vitest";
import type { Env } from "../../src/config.ts";
import type { Finding } from "../../src/doctor/finding.ts";
import { type Endpoints, endpoints as shipped } from "../../src/endpoints.ts";
import { type ApiOptions, type FakeStripeApi, startStripeApi } from "../local/stripe-api.ts";
import { billingUrl, webhookEndpoint } from "../local/stripe-endpoints.ts";
import { anOperator, type Operator } from "../worker/operator.ts";
import type { Road, Testbed } from "../worker/testbed.ts";

const { billing, connect } = shipped;

/** What is shipped, whatever a clone has added to it: each endpoint and handler has findings of its own. */
const ENDPOINTS: Endpoints = Object.fromEntries(
  Object.entries({ billing, connect }).flatMap(([name, endpoint]) => {
    if (!endpoint) return [];
    const { secrets, accounts, handlers } = endpoint;
    return [[name, { secrets, accounts, handlers }]];
  }),
);

/** Where the testbed answers. */
export const HERE = "https://inbox.test";

export interface Deployment extends Operator {
  readonly api: FakeStripeApi;
  /** What its bindings are. */
  readonly env: Env;
  readonly examine: () => Promise<Examined>;
  /** What is not `ok`, by its check; nothing else may be wrong. */
  readonly complaints: () => Promise<Complaints>;
}

export interface Examined {
  readonly ok: boolean;
  readonly findings: readonly Finding[];
}

export type Complaints = Readonly<Record<string, Omit<Finding, "check">>>;

const SECRETS = {
  STRIPE_WEBHOOK_SECRET: "whsec_made_up_for_billing_here",
  STRIPE_CONNECT_WEBHOOK_SECRET: "whsec_made_up_for_connect_here",
  STRIPE_API_KEY: "sk_test_made_up_for_this_test",
  ALERT_URL: "https://alerts.test/a-secret-path",
};

const SETTINGS = {
  ...SECRETS,
  STRIPE_LIVEMODE: "false",
  OUTBOX_QUEUE: { sendBatch: () => Promise.resolve() },
};

/** Opened within a test, and closed when that is over. */
export async function aDeployment(
  options: {
    /** Over those of a healthy one; undefined removes one. */
    readonly env?: Readonly<Record<string, unknown>>;
    readonly endpoints?: Endpoints;
    /** Stripe's API. */
    readonly api?: ApiOptions;
    /** Another database than a new one, of which nothing is expected. */
    readonly databaseUrl?: string;
    readonly route?: (databaseUrl: string) => string;
    readonly road?: Road;
  } = {},
): Promise<Deployment> {
  const { env: over, api: apiOptions, ...others } = options;
  const api = await startStripeApi(apiOptions);
  onTestFinished(api.close);
  api.lists.endpoints = [webhookEndpoint(billingUrl(HERE))];
  const env = { ...SETTINGS, STRIPE_API_URL: api.url, ...over };
  const operator = await anOperator({ endpoints: ENDPOINTS, ...others, env });
  if (others.databaseUrl === undefined) await hasRun(operator.inbox);

  const examine: Deployment["examine"] = async () => {
    const { status, text, body } = await operator.get("/ops/api/doctor");
    expect(status).toBe(200);
    const secrets = Object.keys(SECRETS).flatMap((name) => Reflect.get(env, name) || []);
    for (const secret of [...secrets, "postgres://"]) expect(text).not.toContain(secret);
    return body;
  };
  return {
    ...operator,
    api,
    env: { HYPERDRIVE: { connectionString: operator.inbox.databaseUrl }, ...env },
    examine,
    complaints: async () => {
      const { ok, findings } = await examine();
      expect(new Set(findings.map(({ check }) => check)).size).toBe(findings.length);
      expect(ok).toBe(findings.every(({ state }) => state !== "fail"));
      return Object.fromEntries(
        findings.flatMap(({ check, ...said }) => (said.state === "ok" ? [] : [[check, said]])),
      );
    },
  };
}

/** Whatever is to run again and again did, a moment ago. */
export async function hasRun({ rows }: Pick<Testbed, "rows">): Promise<void> {
  await rows(`insert into heartbeats (name, started_at, completed_at)
    select name, now() - interval '9 s', now() - interval '8 s'
    from unnest('{tick,retention}'::text[]) as name`);
  await rows(`insert into sweep_runs (account, window_from, window_to, completed_at)
    values ('own', now() - interval '1 day', now() - interval '20 min', now())`);
}

export const fails = (found: string, todo: string): Complaints[string] =>
  complaint("fail", found, todo);

export const warns = (found: string, todo: string): Complaints[string] =>
  complaint("warn", found, todo);

/** Could not be looked at, and says why. */
export const skips = (found: string): Complaints[string] => ({
  state: "skipped",
  found: expect.stringContaining(found),
  todo: null,
});

function complaint(state: "warn" | "fail", found: string, todo: string): Complaints[string] {
  return { state, found: expect.stringContaining(found), todo: expect.stringContaining(todo) };
}

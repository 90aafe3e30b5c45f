/**
 * A receiver on an empty, migrated database of its own, reached through its doors.
 * Everything a test sees is an answer, a row or a log line. Runs in workerd and in Node.
 */
import type { ExecutionContext } from "hono";
import { Client } from "pg";
import { inject, type ProvidedContext, vi } from "vitest";
import { createApp } from "../../src/app.ts";
import { tick, type TickCounts } from "../../src/cron.ts";
import { type Endpoints, endpoints as shipped } from "../../src/endpoints.ts";
import { signedRequest } from "../local/sign.ts";

export { anInvoiceEvent, freshId } from "../local/builders.ts";

export const SECRET = "whsec_test_billing";
export const CONNECT_SECRET = "whsec_test_connect";

export interface Answer {
  readonly status: number;
  readonly outcome: unknown;
  readonly event: unknown;
  readonly headers: Headers;
  /** The body as it came. */
  readonly text: string;
}

export interface Testbed {
  readonly databaseUrl: string;
  /** Posts exactly this, and lets everything behind the answer finish too. */
  readonly post: (path: string, init?: RequestInit) => Promise<Answer>;
  /** Signs a body (bytes and text as they are, an object as its JSON) and posts it. */
  readonly deliver: (
    body: object | string | Uint8Array<ArrayBuffer>,
    delivery?: DeliveryOptions,
  ) => Promise<Answer>;
  /** One tick of the cron, and everything behind it; `env` over the receiver's settings. */
  readonly tick: (env?: Readonly<Record<string, unknown>>) => Promise<TickCounts>;
  /** Rows of one statement, on a connection of its own. Amounts (bigint) come as strings. */
  readonly rows: (statement: string, values?: unknown[]) => Promise<Record<string, unknown>[]>;
  /** The counts that the promises are about. */
  readonly books: () => Promise<Books>;
}

export interface DeliveryOptions {
  readonly endpoint?: string;
  readonly secret?: string;
  readonly timestamp?: number | string;
}

export interface Books {
  readonly inbox: number;
  readonly invoices: number;
  readonly entries: number;
  readonly messages: number;
  readonly discrepancies: number;
}

/** How the receiver gets to its database: through Hyperdrive, or a WebSocket by Neon's driver. */
export type Road = ProvidedContext["road"];

/** The bindings that lead there. */
export function roadTo(
  databaseUrl: string,
  road: Road = inject("road"),
): Readonly<Record<string, unknown>> {
  return road === "hyperdrive"
    ? { HYPERDRIVE: { connectionString: databaseUrl } }
    : { DATABASE_URL: databaseUrl, NEON_WS_PROXY: inject("bridgeUrl") };
}

/** Over a WebSocket nothing is pipelined: PIPELINE=off would be the same test a second time. */
export const PIPELINE_SETTINGS: readonly ("on" | "off")[] =
  inject("road") === "neon" ? ["on"] : ["on", "off"];

/**
 * @param options.env settings over the defaults of a working receiver; undefined removes one.
 * @param options.databaseUrl another way to the same database, through a proxy for instance.
 */
export async function openTestbed(
  options: {
    readonly endpoints?: Endpoints;
    /** The receiver itself, instead of one made from `endpoints`. */
    readonly app?: Pick<ReturnType<typeof createApp>, "fetch">;
    readonly env?: Readonly<Record<string, unknown>>;
    /** A database that is there already, instead of a new one. */
    readonly databaseUrl?: string;
    readonly route?: (databaseUrl: string) => string;
    readonly road?: Road;
  } = {},
): Promise<Testbed> {
  const databaseUrl = options.databaseUrl ?? (await copyTemplate());
  const app = options.app ?? createApp(options.endpoints ?? shipped);
  const env = {
    ...roadTo(options.route?.(databaseUrl) ?? databaseUrl, options.road),
    STRIPE_WEBHOOK_SECRET: SECRET,
    STRIPE_CONNECT_WEBHOOK_SECRET: CONNECT_SECRET,
    ...options.env,
  };

  const post: Testbed["post"] = async (path, init) => {
    const { ctx, settled } = collectingContext();
    const request = new Request(`https://inbox.test${path}`, { method: "POST", ...init });
    const response = await app.fetch(request, env, ctx);
    const text = await response.text();
    await settled();
    const said: { outcome?: unknown; event?: unknown } = text.startsWith("{")
      ? JSON.parse(text)
      : {};
    const { outcome, event } = said;
    return { status: response.status, outcome, event, headers: response.headers, text };
  };
  const rows: Testbed["rows"] = (statement, values) => query(databaseUrl, statement, values);

  return {
    databaseUrl,
    post,
    rows,
    tick: async (over) => {
      const { ctx, settled } = collectingContext();
      const { counts } = await tick(options.endpoints ?? shipped, { ...env, ...over }, (rest) =>
        ctx.waitUntil(rest),
      );
      await settled();
      return counts;
    },
    deliver: async (event, { endpoint = "billing", secret, timestamp } = {}) => {
      const key = secret ?? (endpoint === "connect" ? CONNECT_SECRET : SECRET);
      const signing = timestamp === undefined ? {} : { timestamp };
      return post(`/webhooks/stripe/${endpoint}`, await signedRequest(event, key, signing));
    },
    books: async () => {
      const [counts] = await rows(`select
        (select count(*) from webhook_inbox)::int as inbox,
        (select count(*) from invoices)::int as invoices,
        (select count(*) from ledger_entries)::int as entries,
        (select count(*) from outbox)::int as messages,
        (select count(*) from discrepancies)::int as discrepancies`);
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- The statement above is its shape.
      return counts as unknown as Books;
    },
  };
}

/** The log lines written while `work` ran, each parsed. */
export async function logLines(work: () => Promise<unknown>): Promise<Record<string, unknown>[]> {
  const lines: Record<string, unknown>[] = [];
  const keep = (line: unknown): void => {
    lines.push(JSON.parse(String(line)));
  };
  const spies = (["log", "warn", "error"] as const).map((level) =>
    vi.spyOn(console, level).mockImplementation(keep),
  );
  try {
    await work();
  } finally {
    for (const spy of spies) spy.mockRestore();
  }
  return lines;
}

/** What may go on behind an answer is collected, so that a test can wait for it. */
export function collectingContext(): { ctx: ExecutionContext; settled: () => Promise<void> } {
  const rest: Promise<unknown>[] = [];
  return {
    ctx: {
      waitUntil: (promise) => void rest.push(promise),
      passThroughOnException: () => undefined,
      props: {},
    },
    settled: async () => {
      while (rest.length > 0) await rest.shift();
    },
  };
}

/** One statement on one short connection: sockets must not outlive the test that opened them. */
export async function query(
  databaseUrl: string,
  statement: string,
  values: unknown[] = [],
): Promise<Record<string, unknown>[]> {
  const client = new Client({ connectionString: databaseUrl, application_name: "test" });
  client.on("error", () => undefined);
  await client.connect();
  try {
    return (await client.query(statement, values)).rows;
  } finally {
    await client.end();
  }
}

async function copyTemplate(): Promise<string> {
  const name = `test_${crypto.randomUUID().replaceAll("-", "")}`;
  const url = new URL(inject("postgresUrl"));
  await query(url.href, `create database ${name} template ${inject("template")}`);
  url.pathname = `/${name}`;
  return url.href;
}

/** An operator at a receiver's door. */
import { openTestbed, type Testbed } from "./testbed.ts";

/** As `openssl rand -base64 32` writes one. */
export const OPS_TOKEN = "qk3X0wzV6m1Ld8Zt5Rn2Yb7Hc4Jf9Gs0Pa6Ue1Io3Qw=";

export interface Said {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** Of a JSON answer; of another one: null. */
  // oxlint-disable-next-line typescript/no-explicit-any -- A test reads whatever it expects.
  readonly body: any;
}

export interface Operator {
  readonly inbox: Testbed;
  /** As a bearer; `headers` over those that a bearer sends. */
  readonly get: (path: string, headers?: Readonly<Record<string, string>>) => Promise<Said>;
  readonly send: (
    path: string,
    body: unknown,
    headers?: Readonly<Record<string, string>>,
  ) => Promise<Said>;
  /** Exactly this. */
  readonly ask: (path: string, init?: RequestInit) => Promise<Said>;
}

export const BEARER = { authorization: `Bearer ${OPS_TOKEN}`, "x-operator": "Ada" } as const;

export async function anOperator(
  options: Parameters<typeof openTestbed>[0] = {},
): Promise<Operator> {
  const inbox = await openTestbed({
    ...options,
    env: { OPS_TOKEN, STRIPE_LIVEMODE: "false", ...options.env },
  });
  const ask: Operator["ask"] = async (path, init) => {
    const { status, headers, text } = await inbox.post(path, { method: "GET", ...init });
    const isJson = headers.get("content-type")?.startsWith("application/json") ?? false;
    return { status, headers, text, body: isJson && text !== "" ? JSON.parse(text) : null };
  };
  return {
    inbox,
    ask,
    get: (path, headers) => ask(path, { headers: { ...BEARER, ...headers } }),
    send: (path, body, headers) =>
      ask(path, {
        method: "POST",
        headers: { ...BEARER, "content-type": "application/json", ...headers },
        body: JSON.stringify(body),
      }),
  };
}

export const UNUSABLE = "PermanentError:amount_paid_unusable";
export const WHY = "the amount is read from another field now";

export const actions = ({ inbox }: Operator) =>
  inbox.rows(
    "select operator, via, action, subject, why, affected from operator_actions order by id",
  );

/** So many events that are parked with one reason, as a handler's refusal parks them. */
export async function parked({ inbox }: Operator, count: number, reason = UNUSABLE): Promise<void> {
  await inbox.rows(
    `insert into webhook_inbox (endpoint, event_id, event_type, payload, attempts, parked_at, last_error, received_at)
     select 'billing', 'evt_' || $2 || n, 'invoice.paid', '{}', 3, now(), $2, now() - n * interval '1 s'
     from generate_series(1, $1::int) n`,
    [count, reason],
  );
}

/** Everything that changes something. */
export const WRITES = [
  { path: "/ops/api/events/requeue", body: { reason: "x", count: 1, why: "y" } },
  { path: "/ops/api/messages/requeue", body: { reason: "x", count: 1, why: "y" } },
  { path: "/ops/api/discrepancies/1/resolve", body: { note: "y" } },
  {
    path: "/ops/api/discrepancies/resolve",
    body: { kind: "paid_after_void", note: "y", count: 1, found_until: "2099-01-01" },
  },
] as const;

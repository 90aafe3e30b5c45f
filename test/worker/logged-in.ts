/** A browser that logs in. */
import { type Operator, OPS_TOKEN, type Said } from "./operator.ts";

export const HERE = "https://inbox.test";
export const COOKIE = "stripe_inbox_session";

export async function logIn(
  { ask }: Operator,
  fields: Readonly<Record<string, string>> = {},
  headers: Readonly<Record<string, string>> = { origin: HERE },
): Promise<Said> {
  return ask("/ops/login", {
    method: "POST",
    headers: { "content-type": "application/x-www-form-urlencoded", ...headers },
    body: new URLSearchParams({ operator: "Ada", token: OPS_TOKEN, ...fields }).toString(),
  });
}

/** What a browser would send back. */
export function cookieOf({ headers }: Said): string {
  return (headers.get("set-cookie") ?? "").split(";")[0] ?? "";
}

export interface Visitor {
  readonly cookie: string;
  readonly see: (path: string) => Promise<Said>;
  /** Sends a form, as from our own page; `headers` over those of a browser. */
  readonly submit: (
    path: string,
    fields: Readonly<Record<string, string>>,
    headers?: Readonly<Record<string, string>>,
  ) => Promise<Said>;
}

/** Somebody in whose browser there is a session. */
export async function aVisitor(operator: Operator, name = "Ada"): Promise<Visitor> {
  const cookie = cookieOf(await logIn(operator, { operator: name }));
  const form = { cookie, origin: HERE, "content-type": "application/x-www-form-urlencoded" };
  return {
    cookie,
    see: (path) => operator.ask(path, { headers: { cookie } }),
    submit: (path, fields, headers) =>
      operator.ask(path, {
        method: "POST",
        headers: { ...form, ...headers },
        body: new URLSearchParams(fields).toString(),
      }),
  };
}

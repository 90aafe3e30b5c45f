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

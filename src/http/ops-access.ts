/**
 * Who gets in to the operator's side: whoever holds OPS_TOKEN, as a bearer, or by a session that
 * began with it. Where no token is set, there is nothing here.
 */
import { createHash, createHmac, timingSafeEqual } from "node:crypto";
import type { Context, MiddlewareHandler } from "hono";
import { deleteCookie, getSignedCookie, setSignedCookie } from "hono/cookie";
import { readOpsTokens } from "../config-operator.ts";
import type { By } from "../operate/actions.ts";
import type { DoorEnv } from "./answers.ts";

/** Who is at work, and how they came in. */
export interface Identity {
  /** As they call themselves; null: they did not say. */
  readonly operator: string | null;
  readonly via: Exclude<By["via"], "cli">;
}

type Tokens = readonly [string, ...string[]];

const COOKIE = "stripe_inbox_session";
/** A night's shift; whoever works on logs in again. */
const SESSION_SECONDS = 8 * 3_600;
const COOKIE_OPTIONS = {
  path: "/ops",
  httpOnly: true,
  secure: true,
  sameSite: "Strict",
} as const;

/** Printable, without what ends a line; the cookie and the record hold it. */
const NAME = /^[^\p{C}]{1,100}$/u;

/** Lets nobody past while no token is set: not even a wrong one is told from none. */
export const whereConfigured: MiddlewareHandler<DoorEnv> = async (c, next) => {
  if (readOpsTokens(c.env) === null) return c.notFound();
  c.header("cache-control", "no-store");
  return next();
};

/** Lets in who is known, and answers 401 to all others; from another site, 403. */
export const operatorsOnly: MiddlewareHandler<DoorEnv> = async (c, next) => {
  const identity = await identify(c);
  if (!identity) {
    c.header("www-authenticate", 'Bearer realm="stripe-inbox"');
    return c.json({ error: "Operators only: send OPS_TOKEN as a bearer, or log in." }, 401);
  }
  if (identity.via === "session" && !isSafe(c) && !isSameOrigin(c)) return c.json(FOREIGN, 403);
  c.set("identity", identity);
  return next();
};

export const FOREIGN = { error: "This request was made by another site." };

/** Bearers alone: for machines. */
export const bearersOnly: MiddlewareHandler<DoorEnv> = async (c, next) => {
  if (hasBearer(c)) return next();
  c.header("www-authenticate", 'Bearer realm="stripe-inbox"');
  return c.text("Send OPS_TOKEN as a bearer.\n", 401);
};

/** @returns null for whoever cannot show a credential. */
export async function identify(c: Context<DoorEnv>): Promise<Identity | null> {
  if (c.req.header("authorization") !== undefined) {
    if (!hasBearer(c)) return null;
    const operator = c.req.header("x-operator")?.trim() ?? "";
    return { operator: NAME.test(operator) ? operator : null, via: "token" };
  }
  for (const token of tokensOf(c)) {
    const session = await getSignedCookie(c, sessionKey(token), COOKIE);
    const operator = typeof session === "string" ? readSession(session) : null;
    if (operator !== null) return { operator, via: "session" };
  }
  return null;
}

/** Begins a session, if the token is right and there is a name. */
export async function logIn(
  c: Context<DoorEnv>,
  token: string,
  operator: string,
): Promise<boolean> {
  const [first, ...others] = tokensOf(c);
  if (!NAME.test(operator) || ![first, ...others].some((known) => isSame(known, token))) {
    return false;
  }
  const endsAt = Math.floor(Date.now() / 1_000) + SESSION_SECONDS;
  const value = `${endsAt}.${Buffer.from(operator).toString("base64url")}`;
  const options = { ...COOKIE_OPTIONS, maxAge: SESSION_SECONDS };
  await setSignedCookie(c, COOKIE, value, sessionKey(first), options);
  return true;
}

export function logOut(c: Context<DoorEnv>): void {
  deleteCookie(c, COOKIE, COOKIE_OPTIONS);
}

/** Browsers say whence a form comes; what does not say so is not trusted. */
export function isSameOrigin(c: Context): boolean {
  const origin = c.req.header("origin");
  if (origin !== undefined) return origin === new URL(c.req.url).origin;
  return c.req.header("sec-fetch-site") === "same-origin";
}

export function isSafe(c: Context): boolean {
  return c.req.method === "GET" || c.req.method === "HEAD";
}

function hasBearer(c: Context<DoorEnv>): boolean {
  const token = /^Bearer +(\S+)$/i.exec(c.req.header("authorization") ?? "")?.[1];
  return token !== undefined && tokensOf(c).some((known) => isSame(known, token));
}

function tokensOf(c: Context<DoorEnv>): Tokens {
  const tokens = readOpsTokens(c.env);
  if (!tokens) throw new Error("Bug! Without a token nobody gets so far.");
  return tokens;
}

/** In the same time, wherever they differ, and however long they are. */
function isSame(known: string, given: string): boolean {
  return timingSafeEqual(hash(known), hash(given));
}

function hash(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}

/** A key of its own, which ends with its token. */
function sessionKey(token: string): string {
  return createHmac("sha256", token).update("stripe-inbox: sessions").digest("base64");
}

/** @returns the operator; null when the session is over. */
function readSession(value: string): string | null {
  const [endsAt = "", name = ""] = value.split(".");
  if (!/^\d{1,12}$/.test(endsAt) || Number(endsAt) * 1_000 <= Date.now()) return null;
  const operator = Buffer.from(name, "base64url").toString();
  return NAME.test(operator) ? operator : null;
}

/**
 * The operator's settings, read apart from the receiver's: one that is wrong here is refused by name
 * where it is needed, and keeps no event from being received.
 */
import { type Env, InvalidSetting, readQueue, readVar, wholeNumber } from "./config.ts";

/** 32 bytes, as `openssl rand -base64 32` writes them. */
const TOKEN_BYTES = 32;
/** Random text has more; what was repeated has not. */
const DIFFERENT_CHARACTERS = 10;

/**
 * The tokens that let an operator in: one, or several while one is being replaced, separated by
 * commas or white space. Null: none is set, and nobody gets in.
 *
 * @throws InvalidSetting for one that could be guessed.
 */
export function readOpsTokens(env: Env): readonly [string, ...string[]] | null {
  const value = env["OPS_TOKEN"];
  if (value === undefined || value === "") return null;
  const [first, ...others] = typeof value === "string" ? value.split(/[\s,]+/).filter(Boolean) : [];
  if (first === undefined || [first, ...others].some(isGuessable)) {
    throw new InvalidSetting(
      "OPS_TOKEN",
      "must be at least 32 random bytes, such as `openssl rand -base64 32` prints",
    );
  }
  return [first, ...others];
}

/** Fewer bytes than there must be, by what its characters can hold; or what no header can. */
function isGuessable(token: string): boolean {
  const bytes = (token.replace(/=+$/, "").length * bitsOf(token)) / 8;
  const different = new Set(token).size;
  return bytes < TOKEN_BYTES || different < DIFFERENT_CHARACTERS || !/^[\x21-\x7e]+$/.test(token);
}

/** Of each character: decimal, hex, base32 and the like, base64 and whatever has more. */
function bitsOf(token: string): number {
  if (/^\d+$/.test(token)) return Math.log2(10);
  if (/^[\da-f]+$/i.test(token)) return 4;
  return /^[\dA-Z]+$|^[\da-z]+$/.test(token) ? 5 : 6;
}

/** When something is worth an alert, and who is told. */
export interface Alerting {
  /** Null: alerts are logged, and nobody is told. */
  readonly url: string | null;
  readonly backlogSeconds: number;
  readonly outboxSeconds: number;
  readonly sweepSeconds: number;
  /** Whether messages are to leave at all. */
  readonly dispatching: boolean;
  /** False: processing is paused. */
  readonly processing: boolean;
}

const MINUTES = wholeNumber("minutes", 1, 43_200);
const HOURS = wholeNumber("hours", 2, 600);

/** @throws InvalidSetting */
export function readAlerting(env: Env): Alerting {
  return {
    url: readAlertUrl(env["ALERT_URL"]),
    backlogSeconds: readVar(env, "ALERT_BACKLOG_MINUTES", MINUTES, "15") * 60,
    outboxSeconds: readVar(env, "ALERT_OUTBOX_MINUTES", MINUTES, "15") * 60,
    sweepSeconds: readVar(env, "ALERT_SWEEP_HOURS", HOURS, "24") * 3_600,
    dispatching: readQueue(env) !== null,
    processing: env["PROCESSING"] !== "paused",
  };
}

function readAlertUrl(value: unknown): string | null {
  if (value === undefined || value === "") return null;
  const url = typeof value === "string" ? URL.parse(value) : null;
  if (!url || !/^https?:$/.test(url.protocol) || url.username !== "" || url.password !== "") {
    throw new InvalidSetting("ALERT_URL", "must be an http or https URL without a password in it");
  }
  return url.href;
}

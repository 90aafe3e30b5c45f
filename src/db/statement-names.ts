/**
 * Names for prepared statements. A name is a digest of its text: where a pooler that keeps no account
 * of names hands our connection a server that somebody else has used, the same name still means the
 * same statement. After the first trouble with one, the isolate prepares nothing more on that road.
 */
import { createHash } from "node:crypto";
import { log } from "../log.ts";

/** Connection strings by which names came to trouble, as long as the isolate lives. */
const troubled = new Set<string>();

/** By their texts. A delivery has a connection to itself, and is not to compute them anew. */
const digests = new Map<string, string>();

function digestOf(text: string): string {
  const known = digests.get(text);
  if (known !== undefined) return known;
  const digest = createHash("sha256").update(text).digest("hex").slice(0, 40);
  digests.set(text, digest);
  return digest;
}

/**
 * Only what is known to be prepared is sent by its name alone: had its first sending failed, or been
 * skipped because of a statement before it, all that rely on it would fail with it.
 */
export class StatementNames {
  readonly #states = new Map<string, "sent" | "known" | "failed">();
  readonly #road: string;

  constructor(connectionString: string) {
    this.#road = connectionString;
  }

  /** Undefined: to be sent without a name. */
  nameOf(text: string): string | undefined {
    const state = this.#states.get(text);
    if (troubled.has(this.#road) || state === "sent") return undefined;
    if (state !== "known") this.#states.set(text, "sent");
    return `stripe_inbox_${digestOf(text)}`;
  }

  /** What became of a statement that was sent under its name. */
  see(text: string, end: "done" | "failed" | "name trouble"): void {
    if (end === "name trouble" && !troubled.has(this.#road)) {
      troubled.add(this.#road);
      log("warn", "statements are prepared no more: is PREPARE=off to be set?", {});
    }
    if (this.#states.get(text) === "sent") {
      this.#states.set(text, end === "done" ? "known" : "failed");
    }
  }
}

/**
 * Names for prepared statements. A name is a digest of its text: where a pooler that keeps no account
 * of names hands our connection a server that somebody else has used, the same name still means the
 * same statement. After the first trouble with one, a connection prepares nothing any more.
 */
import { createHash } from "node:crypto";

/** https://www.postgresql.org/docs/current/errcodes-appendix.html */
const UNKNOWN_OR_TAKEN_NAME = /^(?:26000|42P05)$/;

/** Whether a server does not know a statement by its name, or knows it already. */
export function isNameTrouble(sqlState: string): boolean {
  return UNKNOWN_OR_TAKEN_NAME.test(sqlState);
}

/**
 * Only what is known to be prepared is sent by its name alone: had its first sending failed, or been
 * skipped because of a statement before it, all that rely on it would fail with it.
 */
export class StatementNames {
  /** Texts that vary would fill the server's memory. */
  static readonly #MOST = 100;
  readonly #names = new Map<
    string,
    { readonly name: string; state: "sent" | "known" | "failed" }
  >();
  #trouble = false;

  /** Undefined: to be sent without a name. */
  nameOf(text: string): string | undefined {
    if (this.#trouble) return undefined;
    const found = this.#names.get(text);
    if (found?.state === "sent" || (!found && this.#names.size === StatementNames.#MOST)) {
      return undefined;
    }
    const digest = (): string => createHash("sha256").update(text).digest("hex").slice(0, 40);
    const name = found?.name ?? `stripe_inbox_${digest()}`;
    if (found?.state !== "known") this.#names.set(text, { name, state: "sent" });
    return name;
  }

  /** @param sqlState of its failure; null: it succeeded. */
  see(text: string, sqlState: string | null): void {
    this.#trouble ||= sqlState !== null && isNameTrouble(sqlState);
    const found = this.#names.get(text);
    if (found?.state === "sent") found.state = sqlState === null ? "known" : "failed";
  }
}

/** How a call to the outside failed, and what is known of it. */
export class CallFailed extends Error {
  override readonly name = "CallFailed";
  /** A code or class, to be stored. */
  readonly code: string;
  /**
   * - `refused`: it can never succeed as it is.
   * - `not now`: nothing happened, and it may succeed later.
   * - `no access`: nothing happened, nor will it before our settings are put right.
   * - `uncertain`: it may have happened.
   */
  readonly kind: "refused" | "not now" | "no access" | "uncertain";
  /** How long the other side wants to be left alone; null: it does not say. */
  readonly retryAfterSeconds: number | null;

  constructor(
    kind: CallFailed["kind"],
    code: string,
    { retryAfterSeconds = null }: { readonly retryAfterSeconds?: number | null } = {},
  ) {
    super(`A call failed: ${kind}, ${code}`);
    this.kind = kind;
    this.code = code;
    this.retryAfterSeconds = retryAfterSeconds;
  }
}

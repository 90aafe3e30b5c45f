/** What an examination finds: one line each, and what to do. */

/** `skipped`: it could not be looked at, for the reason that it says. */
export type FindingState = "ok" | "warn" | "fail" | "skipped";

export interface Finding {
  readonly check: string;
  readonly state: FindingState;
  /** What was seen. */
  readonly found: string;
  /** What to do; null: nothing. */
  readonly todo: string | null;
}

export const ok = (check: string, found: string): Finding => ({
  check,
  state: "ok",
  found,
  todo: null,
});

export const warn = (check: string, found: string, todo: string): Finding => ({
  check,
  state: "warn",
  found,
  todo,
});

export const fail = (check: string, found: string, todo: string): Finding => ({
  check,
  state: "fail",
  found,
  todo,
});

export const skipped = (check: string, found: string): Finding => ({
  check,
  state: "skipped",
  found,
  todo: null,
});

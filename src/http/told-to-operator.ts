/** A fault, to an operator: what is known of it, in words of our own, and what to do. */
import { InvalidSetting } from "../config.ts";
import { explain } from "../faults.ts";

export interface Unavailable {
  readonly error: string;
  readonly sqlstate: string | undefined;
  /** Null: it is not known. */
  readonly todo: string | null;
}

/** @param acted whether something was to be done by it. */
export function unavailableFor(fault: unknown, acted: boolean): Unavailable {
  const { error, detail, sqlstate, todo } = explain(fault);
  const state = typeof sqlstate === "string" ? sqlstate : undefined;
  const said = state === undefined ? String(error) : `Postgres refused it (SQLSTATE ${state}).`;
  return {
    error: typeof detail === "string" ? detail : said,
    sqlstate: state,
    todo:
      fault instanceof InvalidSetting
        ? `Put ${fault.setting} right, and deploy.`
        : typeof todo === "string"
          ? todo
          : todoFor(state, acted),
  };
}

/** https://www.postgresql.org/docs/current/errcodes-appendix.html */
function todoFor(sqlstate: string | undefined, acted: boolean): string | null {
  const because = PASSING[sqlstate ?? ""];
  if (because === undefined) return null;
  return `${because} ${acted ? "This time nothing was done: look at the actions, then try again." : "Try again."}`;
}

/** What was rolled back, and may go well the next time. */
const PASSING: Readonly<Record<string, string>> = {
  "40P01": "Two got into each other's way.",
  "55P03": "Somebody works on one of them for long.",
  "57014": "It took too long.",
};

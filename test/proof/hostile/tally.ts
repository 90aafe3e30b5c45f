/** What came of the inputs of one class: how many, how they were answered, and what was wrong. */
import { count } from "../../local/deliver.ts";
import type { Exchange, Status } from "./wire.ts";

export interface Problem {
  readonly what: "answer" | "rows" | "crash";
  readonly text: string;
}

type Kind = "2xx" | "4xx" | "5xx" | "none";

export class Tally {
  readonly name: string;
  inputs = 0;
  rows = 0;
  crashes = 0;
  /** Of the answers that came. */
  longestMs = 0;
  readonly problems: Problem[] = [];
  readonly #kinds = new Map<Kind, number>();

  constructor(name: string) {
    this.name = name;
  }

  hear({ replies, ms }: Exchange): void {
    this.inputs += replies.length;
    if (replies.every(({ status }) => typeof status === "number")) {
      this.longestMs = Math.max(this.longestMs, ms);
    }
    for (const { status } of replies) count(this.#kinds, kindOf(status));
  }

  answered(kind: Kind): number {
    return this.#kinds.get(kind) ?? 0;
  }
}

function kindOf(status: Status): Kind {
  if (typeof status !== "number") return "none";
  if (status >= 500) return "5xx";
  return status >= 400 ? "4xx" : "2xx";
}

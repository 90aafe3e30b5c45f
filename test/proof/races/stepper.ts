/**
 * Statements that reach Postgres one by one, each when it is told to: a proxy before Postgres holds
 * them on the client's side. A statement is what the server answers with one ReadyForQuery: a Query,
 * or everything up to a Sync. That the client sends several in one flight changes nothing.
 */
import { setTimeout as pause } from "node:timers/promises";
import { type Fate, type Message, type Proxy, startProxy } from "../../local/proxy.ts";
import type { Choose } from "./interleavings.ts";

/** One connection's client, and its statements. */
export interface Walker {
  readonly name: string;
  readonly gate: Gate;
  /** Whether it will send nothing more. */
  readonly isFinished: () => boolean;
}

export interface Step {
  readonly who: string;
  /** How the statement begins. */
  readonly statement: string;
  /** Whether it had to wait for somebody's lock. */
  waited: boolean;
}

/** Whether a backend waits for a lock that another holds. */
export type IsBlocked = (pid: number) => Promise<boolean>;

export class Gate {
  /**
   * Open, everything passes. Closed, each statement is held; closed behind BEGIN, all but that one,
   * which locks nothing and reads nothing but the clock.
   */
  state: "open" | "closed" | "closed behind BEGIN" = "open";
  /** The statement that waits to be let through, by its beginning. */
  held: string | null = null;
  /** Whether its transaction, if there is one, has done more than begin. */
  mayHoldLocks = false;
  pid = 0;
  #unanswered = 0;
  #proxy: Proxy | null = null;
  #letThrough: () => void = () => undefined;
  /** Of the statement that was let through, more messages may follow. */
  #within = false;
  #waiting: (() => void)[] = [];

  /** Whether a statement that was let through has not been answered yet. */
  get running(): boolean {
    return this.#unanswered > 0;
  }

  /** @returns the same database, by way of the gate. For one connection. */
  async route(databaseUrl: string): Promise<string> {
    this.#proxy = await startProxy(databaseUrl, { fate: (message) => this.#fate(message) });
    return this.#proxy.route(databaseUrl);
  }

  async stop(): Promise<void> {
    await this.#proxy?.close();
  }

  /** Lets the statement through that is held. */
  pass(): string {
    const statement = this.held;
    if (statement === null) throw new Error("Bug! No statement is held.");
    this.held = null;
    this.mayHoldLocks ||= statement !== BEGIN;
    this.#unanswered += 1;
    this.#letThrough();
    return statement;
  }

  /** From now on everything passes. */
  open(): void {
    this.state = "open";
    this.#within = false;
    if (this.held !== null) this.pass();
  }

  async until(condition: () => boolean): Promise<void> {
    while (!condition()) await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }

  /** For whoever waits for something that the gate does not see. */
  readonly stir = (): void => {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const resolve of waiting) resolve();
  };

  #fate({ from, type, bytes }: Message): Fate | Promise<Fate> {
    if (from === "server") this.#hear(type, bytes);
    else if (this.state !== "open" && type !== "X") return this.#ask(type, bytes);
    return "pass";
  }

  #ask(type: string, bytes: Buffer): Fate | Promise<Fate> {
    if (this.#within) {
      this.#within = type !== "S";
      return "pass";
    }
    this.#within = type !== "Q";
    const statement = beginningOf(type, bytes);
    if (statement === BEGIN && this.state === "closed behind BEGIN") {
      this.#unanswered += 1;
      return "pass";
    }
    this.held = statement;
    this.stir();
    return new Promise((resolve) => {
      this.#letThrough = () => resolve("pass");
    });
  }

  #hear(type: string, bytes: Buffer): void {
    if (type === "K") this.pid = bytes.readInt32BE(5);
    if (type !== "Z") return;
    if (String.fromCharCode(bytes.readUInt8(5)) === "I") this.mayHoldLocks = false;
    // What passed an open gate was not counted.
    this.#unanswered = Math.max(0, this.#unanswered - 1);
    this.stir();
  }
}

/**
 * Lets the walkers go, one statement at a time, in the order that is chosen, until all have
 * finished. Who waits for a lock cannot be chosen.
 *
 * @param onRest called whenever nobody moves, before each choice and at the end.
 */
export async function stepThrough(
  walkers: readonly [Walker, Walker],
  choose: Choose,
  isBlocked: IsBlocked,
  onRest: () => Promise<void>,
): Promise<readonly Step[]> {
  const steps: Step[] = [];
  let [mover, other] = walkers;
  for (;;) {
    await comeToRest(mover, other, isBlocked, steps);
    await onRest();
    const ready = walkers.filter(({ gate }) => gate.held !== null && !gate.running);
    if (ready.length > 0) {
      const name = choose(ready.map((walker) => walker.name));
      if (name !== mover.name) [mover, other] = [other, mover];
      steps.push({ who: name, statement: mover.gate.pass(), waited: false });
      continue;
    }
    if (walkers.every(({ isFinished }) => isFinished())) return steps;
    // Each waits for the other: Postgres picks one of them, and refuses its statement.
    const waiting = walkers.filter(({ gate }) => gate.running);
    await Promise.race(waiting.map(({ gate }) => gate.until(() => !gate.running)));
  }
}

/**
 * Returns once both hold a statement back, wait for a lock, or have finished. Who moved last comes
 * first: what it did may have freed the other.
 */
async function comeToRest(
  mover: Walker,
  other: Walker,
  isBlocked: IsBlocked,
  steps: readonly Step[],
): Promise<void> {
  const rest = async ({ name, gate, isFinished }: Walker, opponent: Walker): Promise<void> => {
    for (;;) {
      if (gate.running && (await isStopped(gate, opponent.gate, isBlocked))) {
        const step = steps.findLast(({ who }) => who === name);
        if (step) step.waited = true;
        return;
      }
      await gate.until(() => gate.held !== null || isFinished());
      if (!gate.running) return;
    }
  };
  await rest(mover, other);
  const otherWaited = other.gate.running;
  await rest(other, mover);
  if (otherWaited && !other.gate.running) await rest(mover, other);
}

/** Whether a statement that was let through waits for a lock; else it was answered. */
async function isStopped(gate: Gate, opponent: Gate, isBlocked: IsBlocked): Promise<boolean> {
  // Most statements are answered sooner than one could ask.
  const answered = gate.until(() => !gate.running);
  // Who has done nothing in its transaction holds no lock.
  await (opponent.mayHoldLocks ? Promise.race([answered, pause(ASK_AFTER_MS)]) : answered);
  while (gate.running) {
    const stopped = await isBlocked(gate.pid);
    if (stopped && gate.running) return true;
  }
  return false;
}

const ASK_AFTER_MS = 1;
const BEGIN = "begin";
const SHOWN_WORDS = 3;

function beginningOf(type: string, bytes: Buffer): string {
  const [first = "", second = ""] = bytes.subarray(5).toString("utf8").split("\0");
  const text = (type === "Q" ? first : second).replaceAll('"', "").trim();
  if (/^begin\b/.test(text)) return BEGIN;
  return text.split(/\s+/).slice(0, SHOWN_WORDS).join(" ");
}

/**
 * The conversation with Postgres as the proof sees it: message by message, and disturbed at one of
 * them. Messages are counted anew in each conversation, so that the same place is found again.
 */
import type { Fate, Message } from "../../local/proxy.ts";

/** One message of a conversation: where it can be disturbed. */
export interface Boundary {
  /** Counts from 1: connections in the order in which they speak, messages of one side. */
  readonly connection: number;
  readonly from: Message["from"];
  readonly n: number;
  readonly type: string;
  /** The beginning of the statement that was last asked for on this connection. */
  readonly statement: string;
}

/** Where a conversation is to be disturbed, once. */
export interface Plan {
  readonly at: (boundary: Boundary) => boolean;
  /** Says what becomes of that message, which has not been passed on yet. */
  readonly disturb: (boundary: Boundary) => Promise<Fate>;
}

/** What is said between two moments. */
export class Conversation {
  readonly boundaries: Boundary[] = [];
  /** Null until it is disturbed. */
  disturbing: Promise<Fate> | null = null;
  readonly #plan: Plan | null;
  readonly #ranks = new Map<number, number>();
  readonly #counts = new Map<string, number>();
  readonly #statements = new Map<number, string>();

  constructor(plan: Plan | null) {
    this.#plan = plan;
  }

  hear(message: Message): Fate | Promise<Fate> {
    const boundary = this.#place(message);
    this.boundaries.push(boundary);
    if (this.disturbing !== null || !this.#plan?.at(boundary)) return "pass";
    this.disturbing = this.#plan.disturb(boundary);
    return this.disturbing;
  }

  #place({ connection, from, type, bytes }: Message): Boundary {
    const rank = this.#ranks.get(connection) ?? this.#ranks.size + 1;
    this.#ranks.set(connection, rank);
    const n = (this.#counts.get(`${rank} ${from}`) ?? 0) + 1;
    this.#counts.set(`${rank} ${from}`, n);
    const asked = from === "client" ? statementOf(type, bytes) : null;
    if (asked !== null) this.#statements.set(rank, asked);
    return { connection: rank, from, n, type, statement: this.#statements.get(rank) ?? "" };
  }
}

export class Wire {
  #conversation: Conversation | null = null;

  /** For the proxy. */
  readonly fate = (message: Message): Fate | Promise<Fate> =>
    this.#conversation?.hear(message) ?? "pass";

  listen(plan: Plan | null = null): Conversation {
    this.#conversation = new Conversation(plan);
    return this.#conversation;
  }

  hangUp(): void {
    this.#conversation = null;
  }
}

export function sameBoundary(one: Boundary, other: Boundary): boolean {
  return one.connection === other.connection && one.from === other.from && one.n === other.n;
}

/** As a person reads it. */
export function describeBoundary({ connection, from, n, type, statement }: Boundary): string {
  const name = NAMES[from][type] ?? type;
  const of = statement === "" ? "" : ` of "${statement}"`;
  return `connection ${connection}, ${from} message ${n}, ${name}${of}`;
}

/** https://www.postgresql.org/docs/current/protocol-message-formats.html */
const NAMES: Readonly<Record<Message["from"], Readonly<Record<string, string>>>> = {
  client: {
    startup: "StartupMessage",
    P: "Parse",
    B: "Bind",
    D: "Describe",
    E: "Execute",
    S: "Sync",
    Q: "Query",
    X: "Terminate",
  },
  server: {
    "1": "ParseComplete",
    "2": "BindComplete",
    C: "CommandComplete",
    D: "DataRow",
    E: "ErrorResponse",
    K: "BackendKeyData",
    N: "NoticeResponse",
    R: "Authentication",
    S: "ParameterStatus",
    T: "RowDescription",
    Z: "ReadyForQuery",
    n: "NoData",
  },
};

/** A message to put in the place of one that carries a statement: Postgres refuses it, and goes on. */
export function unintelligible({ type }: Boundary): Buffer {
  // A Parse has the statement's name before it, and the number of its parameters' types behind.
  const rest = Buffer.from(type === "P" ? "\0refused\0\0\0" : "refused\0");
  const head = Buffer.from(`${type}\0\0\0\0`);
  head.writeInt32BE(rest.length + 4, 1);
  return Buffer.concat([head, rest]);
}

const SHOWN_CHARACTERS = 44;

function statementOf(type: string, bytes: Buffer): string | null {
  if (type !== "Q" && type !== "P") return null;
  const [first = "", second = ""] = bytes.subarray(5).toString("utf8").split("\0");
  const shown = type === "P" ? second : first;
  return shown.replace(/\s+/g, " ").trim().slice(0, SHOWN_CHARACTERS);
}

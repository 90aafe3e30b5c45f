/**
 * HTTP as no client would speak it: any bytes on a socket, at any pace, and what is answered.
 * It listens for as long as the product promises an answer, and not longer.
 */
import { connect, type Socket } from "node:net";
import { setTimeout as pause } from "node:timers/promises";

export type Step =
  | Uint8Array
  /** Goes on when it was told to. */
  | "await 100"
  /** Says that nothing more comes, and listens. */
  | "end"
  /** Is gone. */
  | "leave"
  | { readonly pauseMs: number }
  /** The same again and again, until it is answered. */
  | { readonly drip: Uint8Array; readonly everyMs: number };

/** `closed`: the connection was ended instead. `none`: nothing was said, or nobody listened. */
export type Status = number | "closed" | "none";

export interface Reply {
  readonly status: Status;
  readonly text: string;
}

export interface Exchange {
  /** As many as were expected. */
  readonly replies: readonly Reply[];
  /** Until the last of them. */
  readonly ms: number;
}

/** The product's own promise. */
export const PROMISED_MS = 10_000;

/** Small enough to hear an answer in between. */
const PIECE_BYTES = 64 * 1024;

/** Plays the steps on one new connection, until so many replies have come. */
export async function exchange(url: URL, steps: readonly Step[], expected = 1): Promise<Exchange> {
  const startedAt = Date.now();
  const call = new Call(url, expected);
  for (const step of steps) if (!call.isOver) await call.play(step);
  const replies = await call.replies();
  return { replies, ms: Date.now() - startedAt };
}

class Call {
  isOver = false;
  readonly #socket: Socket;
  readonly #expected: number;
  readonly #over = Promise.withResolvers<"closed" | "none">();
  readonly #heard = Promise.withResolvers<void>();
  readonly #patience = setTimeout(() => this.#end("none"), PROMISED_MS);
  #received = Buffer.alloc(0);
  #closed = false;

  constructor(url: URL, expected: number) {
    this.#expected = expected;
    this.#socket = connect({ host: url.hostname, port: Number(url.port), allowHalfOpen: true })
      .setNoDelay(true)
      .on("data", (bytes) => this.#hear(bytes))
      .on("error", () => this.#end("closed"))
      .on("end", () => {
        this.#closed = true;
        this.#end("closed");
      });
  }

  async play(step: Step): Promise<void> {
    if (step instanceof Uint8Array) await this.#write(step);
    else if (step === "await 100") await Promise.race([this.#heard.promise, this.#over.promise]);
    else if (step === "end") this.#socket.end();
    else if (step === "leave") this.#end("none");
    else if ("pauseMs" in step) await this.#pause(step.pauseMs);
    else {
      while (!this.isOver) {
        await this.#write(step.drip);
        await this.#pause(step.everyMs);
      }
    }
  }

  async replies(): Promise<readonly Reply[]> {
    const status = await this.#over.promise;
    clearTimeout(this.#patience);
    this.#socket.destroy();
    const replies = readReplies(this.#received, this.#closed).slice(0, this.#expected);
    const missing = Array.from({ length: this.#expected - replies.length }, () => ({
      status,
      text: "",
    }));
    return [...replies, ...missing];
  }

  #hear(bytes: Buffer): void {
    this.#received = Buffer.concat([this.#received, bytes]);
    this.#heard.resolve();
    if (readReplies(this.#received, false).length >= this.#expected) this.#end("none");
  }

  #end(how: "closed" | "none"): void {
    this.isOver = true;
    this.#over.resolve(how);
  }

  /** What is not read any more is not taken any more either. */
  async #write(bytes: Uint8Array): Promise<void> {
    for (let from = 0; from < bytes.length && !this.isOver; from += PIECE_BYTES) {
      const { promise, resolve } = Promise.withResolvers<unknown>();
      this.#socket.write(bytes.subarray(from, from + PIECE_BYTES), resolve);
      await Promise.race([promise, this.#over.promise]);
    }
  }

  async #pause(ms: number): Promise<void> {
    await Promise.race([pause(ms), this.#over.promise]);
  }
}

/** Those that are complete, as each says how long it is; or as far as they came until the end. */
function readReplies(received: Buffer, closed: boolean): Reply[] {
  const replies: Reply[] = [];
  for (let from = 0; ;) {
    const headEnd = received.indexOf("\r\n\r\n", from);
    if (headEnd < 0) return replies;
    const head = received.toString("latin1", from, headEnd);
    const status = Number(/^HTTP\/1\.[01] (\d{3})/.exec(head)?.[1] ?? 0);
    const textStart = headEnd + 4;
    const textEnd = textStart + Number(/^content-length: (\d+)$/im.exec(head)?.[1] ?? 0);
    if (textEnd > received.length && !closed) return replies;
    from = textEnd;
    if (status >= 200) {
      replies.push({ status, text: received.toString("utf8", textStart, textEnd) });
    }
  }
}

/**
 * A TCP proxy before Postgres that sees whole protocol messages, for tests that disturb or measure
 * a conversation: it delays, cuts, silences, and puts one message in the place of another.
 *
 * Not imitated: TLS and cancel requests (cut), lost or reordered packets, a narrow line, and the
 * resets of a real network: a cut is a close, and what was passed on before arrives.
 */
import { once } from "node:events";
import { connect, createServer, type Server, type Socket } from "node:net";
import { LOOPBACK } from "./ports.ts";

export interface Message {
  /** Counts from 1, as do `n`: connections in the order they came, messages of one side. */
  readonly connection: number;
  readonly from: "client" | "server";
  readonly n: number;
  /** The protocol's letter, `Q` or `Z` for instance; `startup` for the first, which has none. */
  readonly type: string;
  readonly bytes: Buffer;
}

/**
 * - `cut before` / `cut half` / `cut after`: both sides are closed, and of the message nothing, its
 *   first half or all of it was passed on.
 * - `silence`: nothing passes any more, not even a close, and both sides stay open.
 */
export type Fate =
  | "pass"
  | "cut before"
  | "cut half"
  | "cut after"
  | "silence"
  | { readonly instead: Buffer };

export interface ProxyOptions {
  /** Each way, so that a round trip takes twice this. */
  readonly delayMs?: number;
  /**
   * Asked for every message, in order; `pass` by default. While it has not decided, whatever comes
   * behind that message in the same direction waits.
   */
  readonly fate?: (message: Message) => Fate | Promise<Fate>;
}

export interface Proxy {
  /** The same database, by way of the proxy. */
  readonly route: (databaseUrl: string) => string;
  /** Resolves once no connection is open. */
  readonly idle: () => Promise<void>;
  /** Ends all connections; no message passes afterwards. */
  readonly close: () => Promise<void>;
  /** The same, at the end of an `await using`. */
  readonly [Symbol.asyncDispose]: () => Promise<void>;
}

/** Protocol 3.x; TLS, GSSAPI and cancel requests carry 1234 in its place. */
const PROTOCOL_MAJOR = 3;

/** @param target connection string of any database of the server; its host and port are used. */
export async function startProxy(target: string, options: ProxyOptions = {}): Promise<Proxy> {
  const { hostname, port: targetPort } = new URL(target);
  const open = new Set<Socket>();
  let whenIdle: (() => void)[] = [];
  const closed = (socket: Socket): void => {
    open.delete(socket);
    if (open.size > 0) return;
    for (const resolve of whenIdle) resolve();
    whenIdle = [];
  };
  let connections = 0;
  const server = createServer({ noDelay: true }, (client) => {
    const upstream = connect({ host: hostname, port: Number(targetPort), noDelay: true });
    for (const socket of [client, upstream]) {
      open.add(socket);
      socket.on("close", () => closed(socket));
    }
    relay(client, upstream, ++connections, options);
  });
  const port = await listen(server);
  const close = async (): Promise<void> => {
    const ended = once(server, "close");
    server.close();
    for (const socket of open) socket.destroy();
    await ended;
  };
  return {
    route: (databaseUrl) => {
      const url = new URL(databaseUrl);
      url.host = `${LOOPBACK}:${port}`;
      return url.href;
    },
    idle: async () => {
      if (open.size > 0) await new Promise<void>((resolve) => whenIdle.push(resolve));
    },
    close,
    [Symbol.asyncDispose]: close,
  };
}

function relay(client: Socket, upstream: Socket, connection: number, options: ProxyOptions): void {
  const { delayMs = 0, fate = () => "pass" } = options;
  let state: "open" | "silent" | "cut" = "open";
  const cut = (): void => {
    if (state !== "open") return;
    state = "cut";
    client.destroySoon();
    upstream.destroySoon();
  };

  const later = (step: () => void): void => {
    if (delayMs === 0) step();
    else setTimeout(step, delayMs);
  };
  const pipe = (from: Message["from"], source: Socket, sink: Socket): void => {
    const split = messageSplitter(from);
    let n = 0;
    const pass = async (chunk: Buffer): Promise<void> => {
      for (const { type, bytes } of split(chunk)) {
        if (state !== "open") return;
        if (type === "startup" && bytes.readUInt16BE(4) !== PROTOCOL_MAJOR) return cut();
        const asked = fate({ connection, from, n: ++n, type, bytes });
        const decided = typeof asked === "object" && "then" in asked ? await asked : asked;
        if (state !== "open") return;
        if (decided === "silence") state = "silent";
        else if (decided === "cut before") cut();
        else {
          sink.write(partOf(bytes, decided));
          if (decided === "cut half" || decided === "cut after") cut();
        }
      }
    };
    let turn = Promise.resolve();
    const inTurn = (step: () => void | Promise<void>): void => {
      turn = turn.then(step);
    };
    source.on("data", (chunk) => later(() => inTurn(() => pass(chunk))));
    source.on("close", () => later(() => inTurn(cut)));
    source.on("error", () => undefined);
  };
  pipe("client", client, upstream);
  pipe("server", upstream, client);
}

function partOf(bytes: Buffer, fate: Exclude<Fate, "cut before" | "silence">): Buffer {
  if (typeof fate === "object") return fate.instead;
  return fate === "cut half" ? bytes.subarray(0, Math.ceil(bytes.length / 2)) : bytes;
}

/** Takes bytes as they come, gives back the messages that are complete. */
function messageSplitter(
  from: Message["from"],
): (chunk: Buffer) => Iterable<Pick<Message, "type" | "bytes">> {
  let rest = Buffer.alloc(0);
  let startup = from === "client";
  return function* split(chunk) {
    rest = Buffer.concat([rest, chunk]);
    for (;;) {
      const lengthAt = startup ? 0 : 1;
      if (rest.length < lengthAt + 4) return;
      const end = lengthAt + rest.readInt32BE(lengthAt);
      if (rest.length < end) return;
      const bytes = rest.subarray(0, end);
      rest = rest.subarray(end);
      yield { type: startup ? "startup" : String.fromCharCode(bytes.readUInt8(0)), bytes };
      startup = false;
    }
  };
}

async function listen(server: Server): Promise<number> {
  server.listen(0, LOOPBACK);
  await once(server, "listening");
  const address = server.address();
  if (typeof address !== "object" || address === null) throw new Error("Bug! This is TCP.");
  return address.port;
}

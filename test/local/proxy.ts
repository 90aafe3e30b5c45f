/**
 * A TCP proxy before Postgres that sees whole protocol messages, for tests that disturb or measure
 * a conversation: it delays, cuts, silences, and puts one message in the place of another.
 *
 * Not imitated: TLS and cancel requests (cut), half a message, lost or reordered packets, a narrow
 * line, and the resets of a real network: a cut is a close, and what was passed on before arrives.
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
 * - `cut before` / `cut after`: both sides are closed, the message withheld or passed on.
 * - `silence`: nothing passes any more, not even a close, and both sides stay open.
 */
export type Fate = "pass" | "cut before" | "cut after" | "silence" | { readonly instead: Buffer };

export interface ProxyOptions {
  /** Each way, so that a round trip takes twice this. */
  readonly delayMs?: number;
  /** Asked for every message, in order; `pass` by default. */
  readonly fate?: (message: Message) => Fate;
}

export interface Proxy {
  /** The same database, by way of the proxy. */
  readonly route: (databaseUrl: string) => string;
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
  let connections = 0;
  const server = createServer({ noDelay: true }, (client) => {
    const upstream = connect({ host: hostname, port: Number(targetPort), noDelay: true });
    for (const socket of [client, upstream]) {
      open.add(socket);
      socket.on("close", () => open.delete(socket));
    }
    relay(client, upstream, ++connections, options);
  });
  const port = await listen(server);
  const close = async (): Promise<void> => {
    const closed = once(server, "close");
    server.close();
    for (const socket of open) socket.destroy();
    await closed;
  };
  return {
    route: (databaseUrl) => {
      const url = new URL(databaseUrl);
      url.host = `${LOOPBACK}:${port}`;
      return url.href;
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
    const pass = (chunk: Buffer): void => {
      for (const { type, bytes } of split(chunk)) {
        if (state !== "open") return;
        if (type === "startup" && bytes.readUInt16BE(4) !== PROTOCOL_MAJOR) return cut();
        const decided = fate({ connection, from, n: ++n, type, bytes });
        if (decided === "silence") state = "silent";
        else if (decided === "cut before") cut();
        else {
          sink.write(typeof decided === "object" ? decided.instead : bytes);
          if (decided === "cut after") cut();
        }
      }
    };
    source.on("data", (chunk) => later(() => pass(chunk)));
    source.on("close", () => later(cut));
    source.on("error", () => undefined);
  };
  pipe("client", client, upstream);
  pipe("server", upstream, client);
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

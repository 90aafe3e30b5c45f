/**
 * A bridge from WebSockets to TCP: what stands, for tests, where Neon's own proxy does. It takes what
 * Neon's serverless driver calls a proxy: `?address=host:port` says where to, on this machine only.
 *
 * Not imitated: TLS, and whatever else Neon's proxy does besides passing bytes on. It asks for no
 * password of its own, has no pooler, wakes no database that sleeps, and ends no session for being
 * idle. What Postgres asks for a password it asks through it, and what Postgres refuses has the
 * SQLSTATE it gave: Neon's proxy refuses by itself, with XX000 whatever it is.
 *
 * A session that ends without a goodbye of either side is a line that is cut: the WebSocket ends
 * abnormally (1006), without a close.
 */
import { once } from "node:events";
import { createServer } from "node:http";
import { connect } from "node:net";
import { type WebSocket, WebSocketServer } from "ws";
import { LOOPBACK } from "./ports.ts";

/** Goodbye, as the client says it, and as Postgres does. */
const TERMINATE = 0x58;
const FATAL = "FATAL";

export interface WebSocketBridge {
  /** What NEON_WS_PROXY is to be. */
  readonly url: string;
  readonly close: () => Promise<void>;
}

/** @param deaf it takes every connection, and hears nothing of what comes on it, not even its end. */
export async function startWebSocketBridge({ deaf = false } = {}): Promise<WebSocketBridge> {
  const http = createServer();
  const sockets = new WebSocketServer({ server: http, perMessageDeflate: false });
  sockets.on("connection", (socket, { url }) =>
    deaf ? socket.pause() : bridge(socket, url ?? ""),
  );
  http.listen(0, LOOPBACK);
  await once(http, "listening");
  const address = http.address();
  if (typeof address !== "object" || address === null) throw new Error("Bug! This is TCP.");
  return {
    url: `ws://${LOOPBACK}:${address.port}/`,
    close: async () => {
      const ended = once(http, "close");
      for (const socket of sockets.clients) socket.terminate();
      http.close();
      await ended;
    },
  };
}

function bridge(socket: WebSocket, url: string): void {
  const address = new URL(url, "ws://bridge").searchParams.get("address") ?? "";
  const [, host, port] = /^(127\.0\.0\.1|localhost):(\d{1,5})$/.exec(address) ?? [];
  if (host === undefined) return socket.close(1008);
  const database = connect({ host, port: Number(port), noDelay: true });
  let goodbye = false;
  socket.on("message", (data: Buffer) => {
    goodbye = data.at(0) === TERMINATE;
    database.write(data);
  });
  socket.on("close", () => database.end());
  socket.on("error", () => database.destroy());
  database.on("data", (data) => {
    goodbye = data.includes(FATAL);
    socket.send(data);
  });
  database.on("error", () => undefined);
  // To TCP, most cuts are a close.
  database.on("close", (hadError) => (goodbye && !hadError ? socket.close() : socket.terminate()));
}

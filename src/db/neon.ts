/**
 * Neon's serverless driver, Postgres through a WebSocket, made to behave like the `pg` of which it is
 * an old fork: every query is one of `pg`'s own, so what is sent and how it is read are the same.
 * It is loaded only where it is used. It sends nothing before the answer to what it sent before.
 */
import { type Client, Query, type QueryConfig, type Submittable } from "pg";
import { WebSocketFailed } from "./unavailable.ts";

interface Stream {
  destroy(): unknown;
  emit(event: "close"): unknown;
  removeAllListeners(event: "data"): unknown;
}

/** What the driver's types hide, or the fork has not got. */
interface Internals {
  readonly connection: {
    readonly stream: Stream;
    emit(event: "error", error: unknown): unknown;
    on(event: "readyForQuery", listener: (message: { readonly status: string }) => void): unknown;
  };
  readonly activeQuery: { readonly name?: string } | null;
  connect(): Promise<void>;
  query(submittable: Submittable): unknown;
  /** Bound when it connects. */
  _handleAuthSASL(message: unknown): unknown;
  _handleAuthSASLContinue(message: unknown): unknown;
  _handleAuthSASLFinal(message: unknown): unknown;
  _handleErrorMessage(message: unknown): unknown;
  _handleParseComplete(message: unknown): unknown;
}

/**
 * A client that is not connected yet.
 *
 * @param connectionString as Neon shows it. What it says of TLS and of channel binding is not needed:
 * the WebSocket is a secure one, whose certificate is verified, whatever is asked for.
 * @param proxy another one than Neon's own, which is on the database's host.
 */
export async function openOverWebSocket(
  connectionString: string,
  proxy: URL | null,
  applicationName: string,
): Promise<Client> {
  const driver = await import("@neondatabase/serverless");
  const client = new driver.Client({
    ...placeOf(new URL(connectionString)),
    application_name: applicationName,
  });
  Object.assign(client.neonConfig, {
    // Each query is sent as one, and at once: the driver's timer may find the socket closed.
    coalesceWrites: false,
    // Connected is who was let in. Otherwise the first query would be told of a wrong password.
    pipelineConnect: false,
    ...(proxy ? through(proxy) : {}),
  });
  // Of the password, the driver keeps a second copy, for whoever looks at the client to see.
  Object.defineProperty(client, "config", { enumerable: false });
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- The driver's types hide it.
  const hidden = client as unknown as Internals;
  endAtOnce(hidden.connection.stream);
  failAtOnce(hidden);
  return asOfToday(hidden);
}

function placeOf(url: URL) {
  const options = url.searchParams.get("options");
  return {
    host: url.hostname,
    port: Number(url.port || 5432),
    user: decodeURIComponent(url.username),
    password: decodeURIComponent(url.password),
    database: decodeURIComponent(url.pathname.slice(1)),
    ...(options === null ? {} : { options }),
  };
}

function through({ host, pathname, protocol }: URL) {
  return {
    wsProxy: (to: string, port: number | string) => `${host}${pathname}?address=${to}:${port}`,
    useSecureWebSocket: protocol === "wss:",
  };
}

/**
 * Whoever waits hears of it now: the other side may never agree to the close, and workerd then keeps the
 * invocation for as long as its socket lives. What still comes is for nobody.
 */
function endAtOnce(stream: Stream): void {
  const destroy = stream.destroy.bind(stream);
  Object.assign(stream, {
    destroy: () => {
      stream.removeAllListeners("data");
      try {
        destroy();
      } catch {
        // There is no socket yet, or none any more.
      }
      stream.emit("close");
    },
  });
}

/** Thrown into the driver's own listeners, a fault would never come to whoever connects. */
function failAtOnce(client: Internals): void {
  const steps = ["_handleAuthSASL", "_handleAuthSASLContinue", "_handleAuthSASLFinal"] as const;
  for (const step of steps) {
    const handle = client[step].bind(client);
    client[step] = async (message) => {
      try {
        await handle(message);
      } catch (error) {
        client.connection.emit("error", error);
      }
    };
  }
}

/** Which statements were sent by name and not answered yet; `pg`'s queries keep it, and rely on it. */
function forgetAnswered(client: Internals): void {
  const submitted: Record<string, string> = {};
  Object.assign(client.connection, { submittedNamedStatements: submitted });
  for (const step of ["_handleErrorMessage", "_handleParseComplete"] as const) {
    const handle = client[step].bind(client);
    client[step] = (message) => {
      const name = client.activeQuery?.name;
      if (name !== undefined) delete submitted[name];
      return handle(message);
    };
  }
}

/** With `pg`'s `query`, and what it tells of the transaction; and failing with errors, as `pg` does. */
function asOfToday(client: Internals): Client {
  const { connection } = client;
  const submit = client.query.bind(client);
  const open = client.connect.bind(client);
  let status: string | null = null;
  connection.on("readyForQuery", (message) => {
    status = message.status;
  });
  forgetAnswered(client);
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- What is asked of it, it has now.
  return Object.assign(client, {
    connect: () => open().catch((thrown: unknown) => Promise.reject(asError(thrown))),
    getTransactionStatus: () => status,
    query: (query: string | QueryConfig | Submittable, values?: unknown[]): unknown =>
      typeof query === "object" && "submit" in query
        ? submit(query)
        : new Promise((resolve, reject) => {
            const answer = (error: unknown, result: unknown): void =>
              error ? reject(error) : resolve(result);
            submit(new Query(query, values, answer));
          }),
  }) as unknown as Client;
}

/** Of a WebSocket that fails, the driver throws the event. */
function asError(thrown: unknown): unknown {
  if (thrown instanceof Error || typeof thrown !== "object" || thrown === null) return thrown;
  return new WebSocketFailed("error" in thrown ? thrown.error : undefined);
}

/**
 * Statements that are sent as one, with one Sync behind them: Postgres answers them all at once, and
 * of what is behind a statement that fails it does nothing. `pg` itself puts a Sync behind each.
 * https://www.postgresql.org/docs/current/protocol-flow.html#PROTOCOL-FLOW-PIPELINING
 *
 * It is made of the driver's own queries, and passes to each what is answered to it.
 */
import { type Connection as DriverConnection, Query } from "pg";

/** What the driver's types hide of a query. */
interface DriverQuery {
  readonly text: string;
  readonly name?: string;
  submit(connection: DriverConnection): unknown;
  handleRowDescription(message: unknown): void;
  handleDataRow(message: unknown): void;
  handleCommandComplete(message: unknown, connection: DriverConnection): void;
  handleEmptyQuery(connection: DriverConnection): void;
  handleReadyForQuery(connection: DriverConnection): void;
  handleError(error: unknown, connection: DriverConnection): void;
}

export interface FlightQuery {
  readonly text: string;
  readonly values: (string | Uint8Array | null)[];
  readonly name?: string;
}

interface Answered {
  readonly rows: readonly Readonly<Record<string, unknown>>[];
  readonly command: string;
}

export class Flight extends Query {
  /** Of each query; those behind one that failed fail with it. */
  readonly results: readonly Promise<Answered>[];
  readonly #queries: readonly DriverQuery[];
  /** The one that is being answered. */
  #at = 0;

  constructor(queries: readonly FlightQuery[]) {
    super({ text: "" });
    const made = queries.map(makeQuery);
    this.#queries = made.map(({ query }) => query);
    this.results = made.map(({ result }) => result);
    // Where a prepared statement came to be known, the driver reads which one it is from here.
    Object.defineProperties(this, {
      name: { get: () => this.#current?.name },
      text: { get: () => this.#current?.text },
      callback: { value: () => undefined },
      submit: { value: (connection: DriverConnection) => this.#submit(connection) },
    });
  }

  get #current(): DriverQuery | undefined {
    return this.#queries[this.#at];
  }

  #submit(connection: DriverConnection): null {
    const quiet: DriverConnection = Object.create(connection, { sync: { value: () => undefined } });
    for (const query of this.#queries) {
      // All answers would be taken for those of others.
      if (query.submit(quiet)) throw new Error("Bug! The driver does not send a statement.");
    }
    connection.sync();
    return null;
  }

  handleRowDescription(message: unknown): void {
    this.#current?.handleRowDescription(message);
  }

  handleDataRow(message: unknown): void {
    this.#current?.handleDataRow(message);
  }

  handleCommandComplete(message: unknown, connection: DriverConnection): void {
    this.#current?.handleCommandComplete(message, connection);
    this.#at += 1;
  }

  handleEmptyQuery(): void {
    this.#at += 1;
  }

  /** Not before: without a BEGIN before it, this is when a flight is committed. */
  handleReadyForQuery(connection: DriverConnection): void {
    for (const query of this.#queries) query.handleReadyForQuery(connection);
  }

  /** Of an error, the driver tells only whoever it comes to, and not that the flight is over. */
  handleError(error: unknown, connection: DriverConnection): void {
    const { submittedNamedStatements: submitted } = internalsOf(connection);
    const isAtCommit = this.#at === this.#queries.length;
    for (const [index, query] of this.#queries.entries()) {
      if (index < this.#at && !isAtCommit) query.handleReadyForQuery(connection);
      else {
        if (query.name !== undefined) delete submitted[query.name];
        query.handleError(error, connection);
      }
    }
  }
}

function internalsOf(connection: DriverConnection): {
  readonly submittedNamedStatements: Record<string, unknown>;
} {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- The driver's types hide them.
  return connection as unknown as ReturnType<typeof internalsOf>;
}

function makeQuery({ text, values, name }: FlightQuery): {
  readonly query: DriverQuery;
  readonly result: Promise<Answered>;
} {
  const { promise, resolve, reject } = Promise.withResolvers<Answered>();
  // A socket that breaks while it is written to fails them before anybody has them.
  promise.catch(() => undefined);
  const config = { text, values, name, queryMode: "extended" };
  const callback = (error: unknown, result: Answered): void =>
    error ? reject(error) : resolve(result);
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- The driver's types know neither.
  const query = new Query(config, undefined, callback) as unknown as DriverQuery;
  return { query, result: promise };
}

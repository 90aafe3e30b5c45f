/**
 * A connection for one piece of work; with `flight.ts` and `neon.ts`, and `migrate.ts` for itself, all
 * that knows a driver.
 *
 * Statements are started in the order given and share a round trip (`pg`'s pipeline mode).
 * Each is compiled and its parameters encoded before any of a flight is sent: a statement that the
 * driver refused locally would never reach the server, while the COMMIT behind it would.
 *
 * Two roads lead to the database: Hyperdrive by `pg`, and a WebSocket by Neon's serverless driver.
 * Settings say which; to whoever has the connection they are the same.
 */
import { fillPlaceholders, type Query, type SQL, type SQLWrapper } from "drizzle-orm";
import { drizzle } from "drizzle-orm/node-postgres";
import { type NodePgSession, NodePgTransaction } from "drizzle-orm/node-postgres/session";
import { PgDialect } from "drizzle-orm/pg-core";
import { Client, type QueryConfig } from "pg";
import { prepareValue } from "pg/lib/utils.js";
import { corkable, type Stream } from "./corkable.ts";
import { Flight, type FlightQuery } from "./flight.ts";
import { openOverWebSocket } from "./neon.ts";
import { isNameTrouble } from "./postgres-errors.ts";
import { RowWrite } from "./row-write.ts";
import { StatementNames } from "./statement-names.ts";
import { Filled } from "./template.ts";
import { refuseTransactionControl } from "./transaction-control.ts";
import { CannotConnect, DatabaseUnavailable } from "./unavailable.ts";

export interface Database {
  readonly connectionString: string;
  /** Whether queries may be sent before the answers to those before them have come. */
  readonly pipeline: boolean;
  /** Whether Postgres is asked to keep the plans of statements that recur; by default not. */
  readonly prepare?: boolean;
  /** Present: by Neon's serverless driver, which pipelines nothing; a proxy of null is Neon's own. */
  readonly webSocket?: { readonly proxy: URL | null };
}

/** Drizzle's transaction object: what a handler reads through, and builds its writes with. */
export type Tx = NodePgTransaction<Record<string, never>, Record<string, never>>;

/** A Drizzle query that was not awaited, or a piece of `sql`. */
export type Write = SQLWrapper;

export interface Statement {
  readonly text: string;
  /** Present, if empty, for a write; our own framing, several statements in one, goes without. */
  readonly values?: readonly (string | Uint8Array | null)[];
  /** Postgres may keep its plan. */
  readonly keepsPlan?: true;
}

export type Row = Readonly<Record<string, unknown>>;

export interface Result {
  readonly rows: readonly Row[];
  /** The command tag's first word: `INSERT`, `COMMIT`, `ROLLBACK` … */
  readonly command: string;
}

export interface Connection {
  /**
   * A transaction object for the transaction that is open now; it refuses queries once ended.
   *
   * @param before called before each of its queries.
   */
  readonly openTx: (before: () => void) => { readonly tx: Tx; readonly end: () => void };
  /** @throws when a parameter cannot be encoded, or the statement would end the transaction. */
  readonly compile: (write: Write) => Statement;
  /** Whether statements share round trips; then writes that follow one another share a Sync. */
  readonly pipelines: boolean;
  /** Starts every statement, in order, without waiting; all promises settle. */
  readonly send: (statements: readonly Statement[]) => Promise<Result>[];
  /** Whether the server, at its last answer, was inside a transaction that can still commit. */
  readonly inTransaction: () => boolean;
  /** True once the socket is gone. */
  readonly isLost: () => boolean;
  /** Lets what was sent finish, then says goodbye; cuts the connection when that takes too long. */
  readonly close: () => Promise<void>;
}

const APPLICATION_NAME = "stripe-inbox";

/** What a close may take: the statements behind an answer, within Workers' 30 s of `waitUntil`. */
const CLOSE_WITHIN_MS = 10_000;

/** The protocol counts them in 16 bits; beyond, the server would blame the connection. */
const MOST_PARAMETERS = 65_535;

const dialect = new PgDialect();

/**
 * @param deadline cuts the connection, and everything waiting on it, when it passes.
 * @throws DatabaseUnavailable
 */
export async function connect(database: Database, deadline: AbortSignal): Promise<Connection> {
  const client = await openClient(database).catch((cause: unknown) => {
    throw cause instanceof DatabaseUnavailable ? cause : new CannotConnect(cause);
  });
  const stream = corkable(streamOf(client));
  let lost = false;
  const markLost = (): void => {
    lost = true;
  };
  const cut = (): void => {
    markLost();
    // end() would first wait for the answers that never come.
    stream.destroy();
  };
  deadline.addEventListener("abort", cut);
  client.on("error", markLost);
  client.on("end", markLost);
  try {
    deadline.throwIfAborted();
    await client.connect();
  } catch (error) {
    cut();
    throw new CannotConnect(error);
  }

  const pipelines = database.pipeline && !database.webSocket;
  let last: Promise<unknown> = Promise.resolve();
  const names = database.prepare ? new StatementNames(database.connectionString) : null;
  const start = (statements: readonly Statement[]): readonly Promise<Result>[] => {
    const [first] = statements;
    if (first && !first.values) return [client.query(first.text)];
    const queries = statements.map((one) => toQuery(one, names));
    const { results } = client.query(new Flight(queries));
    for (const [index, { text, name }] of queries.entries()) {
      if (name === undefined) continue;
      results[index]?.then(
        () => names?.see(text, "done"),
        (error: unknown) => names?.see(text, isNameTrouble(error) ? "name trouble" : "failed"),
      );
    }
    return results;
  };
  const asOnePacket = <T>(write: () => T): T => {
    stream.cork();
    try {
      return write();
    } finally {
      stream.uncork();
    }
  };
  const inTurn = <T>(work: () => Promise<T>): Promise<T> => {
    const done = last.then(work);
    last = done.catch(() => undefined);
    return done;
  };
  /** As in a flight that is sent as one, those behind one that failed fail with it. */
  const startOneByOne = (statements: readonly Statement[]): Promise<Result>[] => {
    let result: Promise<unknown> = Promise.resolve();
    return statements.map((statement) => {
      const before = result;
      const started = inTurn(async () => {
        await before;
        const [own] = await Promise.all(asOnePacket(() => start([statement])));
        if (!own) throw new Error("Bug! A statement without a result.");
        return own;
      });
      result = started;
      return started;
    });
  };

  return {
    openTx: (before) => openTx(client, before, pipelines ? (read) => read() : inTurn),
    compile,
    pipelines,
    send: (statements) => {
      const flights = flightsOf(statements);
      const results = pipelines
        ? asOnePacket(() => flights.flatMap(start))
        : flights.flatMap(startOneByOne);
      if (results.length > 0) last = Promise.allSettled(results);
      return results;
    },
    inTransaction: () => client.getTransactionStatus() === "T",
    isLost: () => lost,
    close: async () => {
      if (lost) return;
      const timer = setTimeout(cut, CLOSE_WITHIN_MS);
      await last;
      if (!lost) await client.end();
      clearTimeout(timer);
    },
  };
}

function toQuery(
  { text, values = [], keepsPlan }: Statement,
  names: StatementNames | null,
): FlightQuery {
  const name = keepsPlan && names?.nameOf(text);
  return { text, values: [...values], ...(name ? { name } : {}) };
}

/** Our framing goes by itself, as do writes; those that follow one another share a Sync. */
function flightsOf(statements: readonly Statement[]): Statement[][] {
  const flights: Statement[][] = [];
  for (const statement of statements) {
    const flight = flights.at(-1);
    if (flight?.[0]?.values && statement.values) flight.push(statement);
    else flights.push([statement]);
  }
  return flights;
}

/** Before it connects, it may read a string that is none, or a file that is not there. */
async function openClient({ connectionString, pipeline, webSocket }: Database): Promise<Client> {
  return webSocket
    ? openOverWebSocket(connectionString, webSocket.proxy, APPLICATION_NAME)
    : new Client({ connectionString, pipeline, application_name: APPLICATION_NAME });
}

/**
 * Built by hand because Drizzle's own `transaction()` awaits BEGIN and COMMIT one by one.
 * It must be a transaction object: on a plain client, a nested `transaction()` would commit ours.
 * What a handler left running must not slip into the next transaction of the connection.
 */
function openTx(
  client: Client,
  before: () => void,
  inTurn: (read: () => Promise<Result>) => Promise<Result>,
): { tx: Tx; end: () => void } {
  let ended = false;
  const query = (config: QueryConfig, values?: unknown[]): Promise<Result> => {
    if (ended) throw new TypeError("A handler's statement came after its transaction.");
    refuseTransactionControl(config.text);
    before();
    return inTurn(() => client.query(oneStatement(config), values));
  };
  const guarded = new Proxy(client, {
    get: (target, key): unknown => (key === "query" ? query : Reflect.get(target, key)),
  });
  const db = drizzle(guarded);
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- Drizzle's types hide the session that its own transaction() passes on.
  const { session } = db._ as unknown as { session: NodePgSession<Record<string, never>, never> };
  return {
    tx: new NodePgTransaction(dialect, session, undefined),
    end: () => {
      ended = true;
    },
  };
}

/** The extended protocol refuses a second statement in the text of the first. */
function oneStatement(query: QueryConfig): QueryConfig {
  const extended: QueryConfig & { queryMode: "extended" } = { ...query, queryMode: "extended" };
  return extended;
}

function compile(write: Write): Statement {
  const one = write instanceof RowWrite ? write.alone : write;
  const isFilled = one instanceof Filled;
  const { sql, params } = isFilled ? textOf(one.text) : writeOut(one.getSQL());
  const values = fillPlaceholders(params, isFilled ? one.values : {}).map(encode);
  return isFilled && one.keepsPlan ? { text: sql, values, keepsPlan: true } : { text: sql, values };
}

const texts = new WeakMap<SQL, Query>();

function textOf(template: SQL): Query {
  const known = texts.get(template);
  if (known) return known;
  const query = writeOut(template);
  texts.set(template, query);
  return query;
}

function writeOut(statement: SQL): Query {
  const query = dialect.sqlToQuery(statement);
  refuseTransactionControl(query.sql);
  if (query.params.length > MOST_PARAMETERS) {
    throw new TypeError(
      `A statement has ${query.params.length} parameters; Postgres takes 65,535.`,
    );
  }
  return query;
}

/** @throws TypeError for what the driver would refuse, or send as something that was not meant. */
function encode(param: unknown, index: number): string | Uint8Array | null {
  const value: unknown =
    typeof param === "function" || typeof param === "symbol" ? undefined : prepareValue(param);
  if (value === null || typeof value === "string" || value instanceof Uint8Array) return value;
  throw new TypeError(`Parameter $${index + 1} cannot be sent to Postgres.`);
}

function streamOf(client: Client): Stream {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- The driver's types hide the socket.
  const { connection } = client as unknown as { connection: { stream: Stream } };
  return connection.stream;
}

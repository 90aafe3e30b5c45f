/**
 * The Worker's own conversation about one event, recorded from its own code, to be repeated for
 * other events without it. So the floor of a benchmark sends what the Worker sends, whatever the
 * Worker may be changed to.
 */
import { connect, type Connection, type Statement } from "../../src/db/connect.ts";
import { endpoints, rulesOf } from "../../src/endpoints.ts";
import type { Settings } from "../../src/config.ts";
import { claimDue } from "../../src/inbox/claim.ts";
import { processClaim } from "../../src/inbox/process.ts";
import { withClient } from "./bench.ts";
import { fillWithWaiting, AMOUNT } from "./waiting-events.ts";

/** Statements that share a round trip. */
export type Flight = readonly Statement[];

export interface EventFacts {
  readonly eventId: string;
  readonly fence: string;
  readonly invoiceId: string;
  readonly customerId: string;
  readonly amount: string;
}

export interface Recorded {
  /** A whole batch: the same statements every time. */
  readonly claim: Flight;
  /** One event: the flights of its transaction. */
  readonly process: (facts: EventFacts) => readonly Flight[];
}

/** No other parameter can have this value by chance. */
const FENCE = 987_654_321;
const NAME = "recorded";

/** @param databaseUrl of a database to spoil: an event is processed in it. */
export async function recordStatements(databaseUrl: string, settings: Settings): Promise<Recorded> {
  const { retry, process: policy } = settings;
  await withClient(databaseUrl, async (client) => {
    await fillWithWaiting(client, { count: 1, name: NAME });
    await client.query("update webhook_inbox set fence = $1", [FENCE - 1]);
  });
  const recorder = new Recorder(
    await connect({ connectionString: databaseUrl, pipeline: true }, new AbortController().signal),
  );
  try {
    const [claim] = await claimDue(recorder.connection, "fresh", policy.claimBatch, policy);
    const claimFlights = recorder.take();
    if (!claim || claimFlights.length !== 1) throw new Error("A claim is not one flight any more.");

    const rules = Object.entries(endpoints).map(
      ([name, endpoint]) => [name, rulesOf(name, endpoint, settings)] as const,
    );
    const { outcome } = await processClaim(recorder.connection, claim, new Map(rules), {
      ...retry,
      timeouts: policy.timeouts,
      workMs: () => policy.timeouts.statementTimeoutMs,
    });
    if (outcome !== "processed") throw new Error(`The recorded event was ${outcome}.`);
    const suffix = claim.eventId.replace(/^evt/, "");
    const facts: EventFacts = {
      eventId: claim.eventId,
      fence: String(FENCE),
      invoiceId: `in${suffix}`,
      customerId: `cus${suffix}`,
      amount: String(AMOUNT),
    };
    return { claim: claimFlights[0] ?? [], process: template(recorder.take(), facts) };
  } finally {
    await recorder.connection.close();
  }
}

/** Repeats flights for other events, by putting their facts in the place of the recorded ones. */
function template(flights: readonly Flight[], recorded: EventFacts): Recorded["process"] {
  const names = ["eventId", "fence", "invoiceId", "customerId", "amount"] as const;
  const values = flights.flat().flatMap((statement) => statement.values ?? []);
  for (const name of names) {
    if (!values.includes(recorded[name])) throw new Error(`The recording holds no ${name}.`);
  }
  const factOf = new Map(names.map((name) => [recorded[name], name]));
  const slots = flights.map((flight) =>
    flight.map(({ text, values: constants }) => ({
      text,
      values: constants?.map((constant) => ({
        constant,
        fact: typeof constant === "string" ? factOf.get(constant) : undefined,
      })),
    })),
  );
  return (facts) =>
    slots.map((flight) =>
      flight.map(({ text, values: filled }) =>
        filled
          ? { text, values: filled.map(({ constant, fact }) => (fact ? facts[fact] : constant)) }
          : { text },
      ),
    );
}

/** A connection that remembers what was sent through it. */
class Recorder {
  readonly connection: Connection;
  #flights: Flight[] = [];

  constructor(connection: Connection) {
    this.connection = {
      ...connection,
      send: (statements) => {
        this.#flights.push([...statements]);
        return connection.send(statements);
      },
    };
  }

  take(): readonly Flight[] {
    const flights = this.#flights;
    this.#flights = [];
    return flights;
  }
}

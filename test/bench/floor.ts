/**
 * The floor under a drain: the Worker's own statements, in its own flights and transactions, from a
 * bare loop over `pg` in Node. What the Worker takes longer is the price of workerd, of Drizzle, of
 * the rules and of the handler; what this loop takes is Postgres' and the driver's.
 *
 * No floor under Postgres itself: other statements for the same effects may be faster.
 */
import { Client } from "pg";
import type { Row, Statement } from "../../src/db/connect.ts";
import type { EventFacts, Flight, Recorded } from "./recorded-statements.ts";

/** Claims and processes on so many connections until nothing is due. */
export async function drainBare(
  databaseUrl: string,
  statements: Recorded,
  connections: number,
): Promise<void> {
  await Promise.all(
    Array.from({ length: connections }, async () => {
      const client = new Client({ connectionString: databaseUrl, pipeline: true });
      await client.connect();
      try {
        while (await drainBatch(client, statements)) {
          // Until nothing is due.
        }
      } finally {
        await client.end();
      }
    }),
  );
}

async function drainBatch(client: Client, { claim, process }: Recorded): Promise<boolean> {
  const claimed = await fly(client, claim);
  for (const row of claimed) {
    const eventId = String(row["event_id"]);
    const fence = String(row["fence"]);
    // The statements behind the mark need what the mark reads.
    const [opening = []] = process({ ...NOTHING, eventId, fence });
    const [marked] = await fly(client, opening);
    if (!marked) throw new Error(`${eventId} was taken by somebody else`);
    const event: PaidEvent = JSON.parse(String(marked["stored"]));
    const { id: invoiceId, customer: customerId, amount_paid: amount } = event.data.object;
    const facts = { eventId: event.id, fence, invoiceId, customerId, amount: String(amount) };
    const [, closing = []] = process(facts);
    await fly(client, closing);
  }
  return claimed.length > 0;
}

interface PaidEvent {
  readonly id: string;
  readonly data: {
    readonly object: {
      readonly id: string;
      readonly customer: string;
      readonly amount_paid: number;
    };
  };
}

const NOTHING: EventFacts = { eventId: "", fence: "", invoiceId: "", customerId: "", amount: "" };

/** @returns the rows of the one statement that is behind BEGIN. */
async function fly(client: Client, flight: Flight): Promise<readonly Row[]> {
  const results = await Promise.all(flight.map((statement) => start(client, statement)));
  return results[1]?.rows ?? [];
}

function start(client: Client, { text, values }: Statement) {
  if (!values) return client.query<Row>(text);
  const query = { text, values: [...values], queryMode: "extended" };
  return client.query<Row>(query);
}

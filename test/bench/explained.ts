/** What the product sends to the database, and how the database carries it out. */
import type { Connection, Statement } from "../../src/db/connect.ts";
import type { Client } from "pg";
import * as v from "valibot";

/** A transaction of one round trip: BEGIN, what is asked, COMMIT. */
export type Flight = readonly Statement[];

/** The last flight that was sent through a connection. */
export function recorded(connection: Connection): { connection: Connection; last: () => Flight } {
  let flight: Flight = [];
  const send: Connection["send"] = (statements) => {
    flight = [...statements];
    return connection.send(statements);
  };
  return { connection: { ...connection, send }, last: () => flight };
}

/** Of one statement, carried out once. */
export interface Cost {
  /** Milliseconds to plan and to execute it. */
  readonly ms: number;
  /** How often it touched a page of 8 kB; where memory is short, each may be a read from a disk. */
  readonly pages: number;
  /** The indexes that were read, and the tables that were read without one. */
  readonly from: readonly string[];
}

const Explained = v.tuple([
  v.looseObject({
    Plan: v.looseObject({ "Shared Hit Blocks": v.number(), "Shared Read Blocks": v.number() }),
    "Planning Time": v.number(),
    "Execution Time": v.number(),
  }),
]);

/** Of each statement between BEGIN and COMMIT. */
export async function costsOf(client: Client, flight: Flight): Promise<readonly Cost[]> {
  const plans = await explain(client, flight, "json");
  return plans.map((rows) => {
    const [explained] = v.parse(Explained, rows[0]);
    const { Plan: plan } = explained;
    return {
      ms: explained["Planning Time"] + explained["Execution Time"],
      pages: plan["Shared Hit Blocks"] + plan["Shared Read Blocks"],
      from: [...new Set(scans(plan))],
    };
  });
}

const Node = v.looseObject({
  "Node Type": v.string(),
  "Index Name": v.optional(v.string()),
  "Relation Name": v.optional(v.string()),
  Plans: v.optional(v.array(v.unknown()), []),
});

function scans(plan: unknown): readonly string[] {
  const node = v.parse(Node, plan);
  const index = node["Index Name"];
  const own =
    index !== undefined
      ? [index]
      : node["Node Type"] === "Seq Scan"
        ? [`all of ${node["Relation Name"]}`]
        : [];
  return [...own, ...node.Plans.flatMap(scans)];
}

/** For each statement between BEGIN and COMMIT: its plan, to be read by a person. */
export async function plansOf(client: Client, flight: Flight): Promise<readonly string[]> {
  const plans = await explain(client, flight, "text");
  return plans.map((lines) => lines.join("\n"));
}

/** Carries it out, and takes it back. */
async function explain(
  client: Client,
  flight: Flight,
  format: "json" | "text",
): Promise<readonly (readonly unknown[])[]> {
  const [begin] = flight;
  if (!begin) throw new Error("Nothing was sent.");
  await client.query(begin.text);
  try {
    const plans: (readonly unknown[])[] = [];
    for (const { text, values = [] } of flight.slice(1, -1)) {
      const { rows } = await client.query<Record<string, unknown>>(
        `explain (analyze, buffers, format ${format}) ${text}`,
        [...values],
      );
      plans.push(rows.map((row) => row["QUERY PLAN"]));
    }
    return plans;
  } finally {
    await client.query("rollback");
  }
}

/**
 * How long operators wait for what they ask of an inbox of millions of events: each statement that
 * the product sends for the figures, the count of an hour and the lists of events, as the database
 * times it; and the figures and lists as a whole, as the product sees it, on a connection that is
 * open; and the pages, as the Worker answers them. All take turns, so that none finds only its own
 * pages in memory.
 *
 * `--rows`; `--database` measures one that was filled before; `--plans` prints all plans.
 */
import { connect } from "../../src/db/connect.ts";
import { type Bench, type Extent, runBench, say, withClient, withExtent } from "./bench.ts";
import { type Cost, costsOf, type Flight, plansOf, recorded } from "./explained.ts";
import { median, printTable } from "./figures.ts";
import { printMachine } from "./machine.ts";
import { catchUp, fillWithMany } from "./many-events.ts";
import { measurePages } from "./operator-pages.ts";
import { type Question, questions } from "./operator-questions.ts";
import type { Client } from "pg";

const RUNS = 7;
/** The plan of what takes longer is printed. */
const SLOW_MS = 100;

interface Asked extends Question {
  readonly flight: Flight;
  readonly wallMs: number[];
  /** Of each statement, all runs. */
  readonly costs: readonly Cost[][];
}

export async function measureOperator(bench: Bench, { rows, plans }: Extent): Promise<void> {
  const databaseUrl = await bench.database("operator");
  await withClient(databaseUrl, (client) => fillWithMany(client, rows));
  await measure(databaseUrl, plans);
}

async function measure(databaseUrl: string, plans: boolean): Promise<void> {
  const database = { connectionString: databaseUrl, pipeline: true };
  const connection = await connect(database, new AbortController().signal);
  const { connection: db, last } = recorded(connection);
  try {
    await withClient(databaseUrl, async (client) => {
      await catchUp(client);
      const asked: Asked[] = [];
      for (const question of await questions(db, client)) {
        await question.ask(db);
        const flight = last();
        const costs = flight.slice(1, -1).map(() => []);
        asked.push({ ...question, flight, wallMs: [], costs });
      }
      for (let run = 0; run < RUNS; run++) {
        for (const { ask, once = false, flight, wallMs, costs } of asked) {
          if (!once) wallMs.push(await timed(() => ask(db)));
          const measured = await costsOf(client, flight);
          for (const [index, cost] of measured.entries()) costs[index]?.push(cost);
        }
      }
      print(asked);
      await measurePages(databaseUrl, client);
      for (const one of asked) await printPlans(client, one, plans);
    });
  } finally {
    await connection.close();
  }
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const startedAt = performance.now();
  await work();
  return performance.now() - startedAt;
}

function print(asked: readonly Asked[]): void {
  const statements = asked.flatMap((one) =>
    one.costs.map((costs, index) => [
      ...cells(
        nameOf(one, index),
        costs.map(({ ms }) => ms),
      ),
      median(costs.map(({ pages }) => pages)).toFixed(0),
      costs.at(-1)?.from.join(", ") ?? "",
    ]),
  );
  printTable(["statement, in ms", "median", "worst", "pages", "read from"], statements);
  const whole = asked.filter(({ once }) => !once);
  printTable(
    ["as a whole, in ms", "median", "worst"],
    whole.map(({ what, wallMs }) => cells(what, wallMs)),
  );
}

function cells(what: string, times: readonly number[]): string[] {
  return [what, median(times).toFixed(1), Math.max(...times).toFixed(1)];
}

async function printPlans(client: Client, asked: Asked, all: boolean): Promise<void> {
  const isShown = (costs: readonly Cost[]): boolean =>
    all || median(costs.map(({ ms }) => ms)) > SLOW_MS;
  if (!asked.costs.some(isShown)) return;
  const plans = await plansOf(client, asked.flight);
  for (const [index, costs] of asked.costs.entries()) {
    if (isShown(costs)) say(`\n${nameOf(asked, index)}\n${plans[index]}`);
  }
}

function nameOf({ what, names }: Question, index: number): string {
  return names[index] ?? `${what}: statement ${index + 1}`;
}

if (import.meta.main) {
  await withExtent(({ databaseUrl, plans }) =>
    databaseUrl === undefined
      ? runBench(printMachine, measureOperator)
      : measure(databaseUrl, plans),
  );
}

/**
 * How soon an event is processed that was answered when it was stored: async mode on an otherwise
 * idle machine, one delivery after the other, the next when the one before is processed.
 *
 * Two clocks. Ours, from the arrival of the answer to that of the database's word that the event is
 * committed as processed: an upper bound of what the sender sees, since the word travels too; 0
 * when it came before the answer. The database's, from `received_at` to `processed_at`: it starts
 * before the answer, and ends where the transaction begins that processes the event.
 *
 * Not measured: several deliveries at once, a database that is far away, a cold Worker.
 */
import { post } from "../local/deliver.ts";
import { type Bench, type BenchWorker, type Extent, runBench, withClient } from "./bench.ts";
import { percentile, printTable } from "./figures.ts";
import { printMachine } from "./machine.ts";
import type { Result } from "./results.ts";
import { AMOUNT, paidEvent } from "./waiting-events.ts";
import type { Client } from "pg";

/** They pay for compiling, and do not count. */
const WARM_UP = 20;
const GIVE_UP_MS = 15_000;
const GOAL_MS = 50;

/** Heard when the transaction commits. */
const ANNOUNCE = `
  create function announce() returns trigger language plpgsql as
    $$ begin perform pg_notify('processed', new.event_id); return null; end $$;
  create trigger announce after update on webhook_inbox for each row
    when (old.processed_at is null and new.processed_at is not null) execute function announce();
  listen processed`;

export async function measureLatency(
  bench: Bench,
  { deliveries }: Extent,
): Promise<readonly Result[]> {
  const databaseUrl = await bench.database("latency");
  return withClient(databaseUrl, async (client) => {
    await client.query(ANNOUNCE);
    const processedAt = listen(client);
    const behindAnswer = await bench.withWorker(databaseUrl, { RECEIVE_MODE: "async" }, (worker) =>
      deliverInTurn(worker, deliveries, processedAt),
    );
    const inDatabase = await timesInDatabase(client);
    printTable(
      [`async mode, ${deliveries} deliveries in turn`, "p50", "p95"],
      [
        row("from the answer to committed as processed", behindAnswer),
        row("from `received_at` to `processed_at`", inDatabase),
      ],
    );
    const p50 = percentile(behindAnswer, 50);
    return [
      {
        what: "async: from the answer to committed as processed, p50",
        goal: `under ${GOAL_MS} ms`,
        peers: "",
        floor: "",
        result: `${p50.toFixed(1)} ms`,
        holds: p50 < GOAL_MS,
      },
    ];
  });
}

function row(what: string, ms: readonly number[]): string[] {
  const show = (percent: number): string => `${percentile(ms, percent).toFixed(1)} ms`;
  return [what, show(50), show(95)];
}

/** @returns the milliseconds from each answer to the word that its event is processed. */
async function deliverInTurn(
  { door }: BenchWorker,
  deliveries: number,
  processedAt: (eventId: string) => Promise<number>,
): Promise<readonly number[]> {
  const samples: number[] = [];
  for (let n = 0; n < WARM_UP + deliveries; n++) {
    const id = `evt_${n < WARM_UP ? "warm_up" : "latency"}_${n}`;
    const processed = processedAt(id);
    const answer = await post(door, JSON.stringify(paidEvent(id, AMOUNT)));
    const answeredAt = performance.now();
    if (answer.outcome !== "stored") throw new Error(`${id} was answered with ${answer.outcome}`);
    const ms = Math.max(0, (await processed) - answeredAt);
    if (n >= WARM_UP) samples.push(ms);
  }
  return samples;
}

/** To be asked before the event is delivered. */
function listen(client: Client): (eventId: string) => Promise<number> {
  const waiting = new Map<string, (at: number) => void>();
  client.on("notification", ({ payload = "" }) => waiting.get(payload)?.(performance.now()));
  return (eventId) => {
    const { promise, resolve, reject } = Promise.withResolvers<number>();
    const timer = setTimeout(() => reject(new Error(`${eventId} is not processed`)), GIVE_UP_MS);
    waiting.set(eventId, (at) => {
      clearTimeout(timer);
      waiting.delete(eventId);
      resolve(at);
    });
    // Listened to later, or never when the delivery fails.
    promise.catch(() => undefined);
    return promise;
  };
}

async function timesInDatabase(client: Client): Promise<readonly number[]> {
  const { rows } = await client.query<{ ms: number }>(
    `select extract(epoch from processed_at - received_at)::float8 * 1000 as ms
     from webhook_inbox where event_id like 'evt\\_latency\\_%'`,
  );
  return rows.map(({ ms }) => ms);
}

if (import.meta.main) await runBench(printMachine, measureLatency);

/**
 * How fast a backlog is worked off: due `invoice.paid` events, each processed in a transaction of
 * its own by the real Worker's ticks with default settings, one tick called after the other. The
 * clock is the database's: from the first claim to the last transaction.
 *
 * Before it and after it, in the same run, the floor: the same statements from a bare loop. The two
 * floors differ by the machine's noise. Each drain is followed by a look at the books.
 *
 * Not measured: failing events, several Workers, handlers that read, a backlog beyond memory.
 */
import { type Settings, readSettings } from "../../src/config.ts";
import { type Bench, type Extent, runBench, say, withClient } from "./bench.ts";
import { printTable } from "./figures.ts";
import { drainBare } from "./floor.ts";
import { printMachine } from "./machine.ts";
import { type Recorded, recordStatements } from "./recorded-statements.ts";
import { AMOUNT, fillWithWaiting } from "./waiting-events.ts";
import type { Client } from "pg";

interface Rate {
  readonly what: string;
  readonly perSecond: number;
  readonly isFloor: boolean;
}

const BACKLOG = "backlog";

export async function measureDrain(bench: Bench, { events }: Extent): Promise<void> {
  await withClient(await bench.database(BACKLOG), async (client) => {
    await fillWithWaiting(client, { count: events, name: "drain" });
    await client.query("vacuum (analyze)");
  });
  const recordingUrl = await bench.database("recording");
  const settings = readSettings({
    HYPERDRIVE: { connectionString: recordingUrl },
    STRIPE_LIVEMODE: "false",
  });
  const statements = await recordStatements(recordingUrl, settings);

  const floor = async (name: string): Promise<Rate> => {
    const url = await bench.database(name, BACKLOG);
    await drainBare(url, statements, settings.process.concurrency);
    return { what: floorName(statements, settings), isFloor: true, ...(await rate(url)) };
  };
  const rate = async (url: string): Promise<{ perSecond: number }> => {
    const seconds = await withClient(url, (client) => checkBooks(client, events, settings));
    say(`${events} events in ${seconds.toFixed(1)} s`);
    return { perSecond: events / seconds };
  };

  const rates: Rate[] = [await floor("floor_before")];
  const workerUrl = await bench.database("drained_by_worker", BACKLOG);
  const ticks = await bench.withWorker(workerUrl, {}, ({ tick }) =>
    withClient(workerUrl, (client) => drainByTicks(client, tick)),
  );
  const what = `the Worker, ${ticks} ${ticks === 1 ? "tick" : "ticks"}, default settings`;
  rates.push({ what, isFloor: false, ...(await rate(workerUrl)) }, await floor("floor_after"));
  print(rates, events);
}

function floorName({ claim, process }: Recorded, { process: policy }: Settings): string {
  const nothing = { eventId: "", fence: "", invoiceId: "", customerId: "", amount: "" };
  const perEvent = process(nothing).flat().length;
  return (
    `floor: a bare loop, the same ${claim.length} statements per claim of ${policy.claimBatch} and ` +
    `${perEvent} per event, ${policy.concurrency} connections`
  );
}

/** @returns how many ticks it took. */
async function drainByTicks(client: Client, tick: () => Promise<void>): Promise<number> {
  let before = Number.POSITIVE_INFINITY;
  for (let ticks = 0; ; ticks++) {
    const { rows } = await client.query<{ left: number }>(
      "select count(*)::int as left from webhook_inbox where processed_at is null",
    );
    const left = rows[0]?.left ?? 0;
    if (left === 0) return ticks;
    if (left >= before) throw new Error(`A tick left all of ${left} events as they were.`);
    before = left;
    await tick();
  }
}

/** @returns the seconds from the first claim to the last transaction. */
async function checkBooks(client: Client, events: number, settings: Settings): Promise<number> {
  // The lease tells when the claim was.
  const { rows } = await client.query<Record<string, number>>(
    `select
       (select count(*)::int from webhook_inbox where outcome = 'processed' and attempts = 1)
         as processed,
       (select count(*)::int from invoices where status = 'paid' and amount_paid = $1) as paid,
       (select count(*)::int from ledger_entries where amount = $1) as entries,
       (select count(*)::int from outbox where event_type = 'InvoicePaymentBooked') as messages,
       (select count(*)::int from discrepancies) as discrepancies,
       (select extract(epoch from max(processed_at) - min(available_at))::float8 + $2
         from webhook_inbox) as seconds`,
    [AMOUNT, settings.process.leaseSeconds],
  );
  const { seconds, ...books } = rows[0] ?? {};
  const right = { processed: events, paid: events, entries: events, messages: events };
  const expected = JSON.stringify({ ...right, discrepancies: 0 });
  if (JSON.stringify(books) !== expected) {
    throw new Error(`The books are wrong: ${JSON.stringify(books)} instead of ${expected}`);
  }
  return seconds ?? Number.NaN;
}

function print(rates: readonly Rate[], events: number): void {
  const floors = rates.filter(({ isFloor }) => isFloor);
  const floor = floors.reduce((sum, { perSecond }) => sum + perSecond, 0) / floors.length;
  printTable(
    [`drain of ${events} waiting events`, "events/s", "share of the floor"],
    rates.map(({ what, perSecond }) => [
      what,
      perSecond.toFixed(0),
      `${((100 * perSecond) / floor).toFixed(0)} %`,
    ]),
  );
}

if (import.meta.main) await runBench(printMachine, measureDrain);

/**
 * What the isolate's heap holds while a backlog is drained by ticks, and while bodies of 4 MiB are
 * delivered, several at a time: V8's own figures, asked for all the while. They hold garbage that
 * was not collected yet: all is done a second time with a collection before each look, to tell what
 * of it is alive.
 *
 * Not measured: peaks within a turn of the isolate, and workerd's own memory around it; an isolate
 * that lives for days.
 */
import { setTimeout as pause } from "node:timers/promises";
import { signatureHeader } from "../../local/sign.ts";
import { type Bench, type Extent, runBench, withClient } from "../bench.ts";
import { printTable } from "../figures.ts";
import { printMachine } from "../machine.ts";
import type { Result } from "../results.ts";
import { fillWithWaiting } from "../waiting-events.ts";
import { largeEvent, type Shape } from "./large-events.ts";
import { type InspectedWorker, withInspectedWorker } from "./inspected-worker.ts";
import type { Heap } from "./inspector.ts";

const MEBIBYTE = 1024 * 1024;
const MOST_MEBIBYTES = 64;
const POLL_MS = 50;
const SECRET = "whsec_memory";
const AT_A_TIME = [1, 4] as const;
const LARGE_DELIVERIES = 8;

interface Peak {
  /** The largest sum of the two that was seen. */
  readonly all: number;
  readonly used: number;
  readonly backing: number;
  readonly looks: number;
}

interface Measured {
  readonly what: string;
  readonly peak: Peak;
  /** With a garbage collection before each look. */
  readonly live: Peak;
  /** With nothing under way any more, after a collection. */
  readonly kept: number;
}

export async function measureMemory(
  bench: Bench,
  { events }: Pick<Extent, "events">,
): Promise<readonly Result[]> {
  const url = await bench.database("memory");
  const vars = { STRIPE_WEBHOOK_SECRET: SECRET, STRIPE_LIVEMODE: "false" };
  const inNewWorker = (
    use: (worker: InspectedWorker) => Promise<readonly Measured[]>,
  ): Promise<readonly Measured[]> => withInspectedWorker(url, vars, use);
  const measured = [
    ...(await inNewWorker(async (worker) => [await measureDrain(worker, url, events)])),
    ...(await inNewWorker((worker) => measureLarge(worker, "one text"))),
    ...(await inNewWorker((worker) => measureLarge(worker, "many lines"))),
  ];
  print(measured);
  return measured.map(result);
}

async function measureDrain(
  worker: InspectedWorker,
  databaseUrl: string,
  count: number,
): Promise<Measured> {
  const peakWith = async (name: string, look: () => Promise<Heap>): Promise<Peak> => {
    await withClient(databaseUrl, (client) => fillWithWaiting(client, { count, name }));
    return peakOf(() => drain(databaseUrl, worker), look);
  };
  return {
    what: `a drain of ${count.toLocaleString("en")} events`,
    peak: await peakWith("plain", worker.heap),
    live: await peakWith("live", () => collected(worker)),
    kept: await kept(worker),
  };
}

async function measureLarge(worker: InspectedWorker, shape: Shape): Promise<readonly Measured[]> {
  const measured: Measured[] = [];
  for (const lanes of AT_A_TIME) {
    const send = (name: string) => () => deliver(worker, { shape, lanes, name });
    measured.push({
      what: `deliveries of 4 MiB (${shape}), ${lanes} at a time`,
      peak: await peakOf(send("plain"), worker.heap),
      live: await peakOf(send("live"), () => collected(worker)),
      kept: await kept(worker),
    });
  }
  return measured;
}

function result({ what, peak, live, kept: atTheEnd }: Measured): Result {
  return {
    what: `heap of the isolate in ${what}`,
    goal: `under ${MOST_MEBIBYTES} MiB`,
    peers: "",
    floor: `${mebibytes(atTheEnd)} MiB when all is done`,
    result:
      `${mebibytes(peak.all)} MiB at most, with garbage and buffers; ` +
      `${mebibytes(live.all)} MiB of it alive`,
    holds: peak.all < MOST_MEBIBYTES * MEBIBYTE,
  };
}

async function peakOf(work: () => Promise<void>, look: () => Promise<Heap>): Promise<Peak> {
  const looks: Heap[] = [];
  const working = work();
  const ended = working.then(
    () => true,
    () => true,
  );
  do {
    looks.push(await look());
  } while (!(await Promise.race([ended, pause(POLL_MS, false)])));
  await working;
  const most = (of: (heap: Heap) => number): number =>
    looks.reduce((largest, heap) => Math.max(largest, of(heap)), 0);
  return {
    all: most(total),
    used: most(({ used }) => used),
    backing: most(({ backing }) => backing),
    looks: looks.length,
  };
}

async function collected({ heap, collectGarbage }: InspectedWorker): Promise<Heap> {
  await collectGarbage();
  return heap();
}

async function kept(worker: InspectedWorker): Promise<number> {
  return total(await collected(worker));
}

function total({ used, backing }: Heap): number {
  return used + backing;
}

async function drain(databaseUrl: string, { tick }: InspectedWorker): Promise<void> {
  await withClient(databaseUrl, async (client) => {
    const count = async (): Promise<number> => {
      const { rows } = await client.query<{ left: number }>(WAITING);
      return rows[0]?.left ?? 0;
    };
    for (let left = await count(); left > 0;) {
      await tick();
      const now = await count();
      if (now >= left) throw new Error(`A tick left all of ${left} events as they were.`);
      left = now;
    }
  });
}

const WAITING = "select count(*)::int as left from webhook_inbox where processed_at is null";

interface Sent {
  readonly shape: Shape;
  readonly lanes: number;
  readonly name: string;
}

async function deliver(worker: InspectedWorker, { shape, lanes, name }: Sent): Promise<void> {
  let next = 0;
  const lane = async (): Promise<void> => {
    while (next < LARGE_DELIVERIES) {
      const id = `evt_${shape.replace(" ", "_")}_${lanes}_${name}_${next++}`;
      const body = largeEvent(id, shape);
      const status = await worker.deliver(body, await signatureHeader(body, SECRET));
      if (status !== 200) throw new Error(`A large body was answered with ${status}.`);
    }
  };
  await Promise.all(Array.from({ length: lanes }, lane));
}

function print(all: readonly Measured[]): void {
  const head = ["most", "most in the heap", "most in buffers", "most alive", "kept", "looks"];
  printTable(
    ["memory of the isolate, in MiB", ...head],
    all.map(({ what, peak, live, kept: atTheEnd }) => [
      what,
      ...[peak.all, peak.used, peak.backing].map(mebibytes),
      mebibytes(live.all),
      mebibytes(atTheEnd),
      `${peak.looks} + ${live.looks}`,
    ]),
  );
}

function mebibytes(bytes: number): string {
  return (bytes / MEBIBYTE).toFixed(1);
}

if (import.meta.main) {
  await runBench(printMachine, async (bench, extent) => {
    await measureMemory(bench, extent);
  });
}

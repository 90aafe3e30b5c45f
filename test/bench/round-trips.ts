/**
 * Round trips to Postgres on each path of a delivery: the real Worker, behind a proxy that delays
 * every message. What a path takes longer with the delay than without it, divided by the delay of
 * one round trip, is its number of round trips; the time of the machine itself cancels out.
 * Connection set-up is counted apart: it ends with the first statement.
 */
import { parseArgs } from "node:util";
import { createDatabase, createTemplate } from "../local/databases.ts";
import { post } from "../local/deliver.ts";
import { invoiceEvent, stripeEvent } from "../local/events.ts";
import { freePort } from "../local/ports.ts";
import { type Message, startProxy } from "../local/proxy.ts";
import { claimRun } from "../local/run-file.ts";
import { startTemporaryCluster } from "../local/temporary-cluster.ts";
import { startWorker } from "../local/worker.ts";
import { Client } from "pg";

const { values: flags } = parseArgs({
  options: {
    delay: { type: "string", default: "20" },
    repeats: { type: "string", default: "15" },
  },
});
const delayMs = Number(flags.delay);
const repeats = Number(flags.repeats);
const SECRET = "whsec_bench";

/** Each path is one delivery; some need a world in which it can happen. */
interface Path {
  readonly name: string;
  readonly status: number;
  readonly outcome: string;
  readonly event: (id: string) => object;
  readonly before?: string;
}

const BREAK = `create or replace function refuse() returns trigger language plpgsql as
  $$ begin raise exception 'refused'; end $$;
  create trigger refuse before insert on ledger_entries for each row execute function refuse()`;
const MEND = "drop trigger refuse on ledger_entries";

const paid = (id: string) => paidInvoice(id, 4200);
const PATHS: readonly Path[] = [
  { name: "new event", status: 200, outcome: "processed", event: paid },
  { name: "duplicate", status: 200, outcome: "duplicate", event: paid },
  {
    name: "ignored (no handler)",
    status: 200,
    outcome: "ignored",
    event: (id) => stripeEvent("customer.updated", { id: "cus_bench" }, options(`${id}_ignored`)),
  },
  {
    name: "the handler refuses, the refusal is recorded",
    status: 200,
    outcome: "needs_review",
    event: (id) => paidInvoice(`${id}_refused`, -1),
  },
  {
    name: "the database refuses, the failure is recorded",
    status: 500,
    outcome: "failed",
    event: (id) => paidInvoice(`${id}_failed`, 4200),
    before: BREAK,
  },
  {
    name: "redelivery after a recorded failure",
    status: 200,
    outcome: "processed",
    event: (id) => paidInvoice(`${id}_failed`, 4200),
    before: MEND,
  },
];

interface Sample {
  readonly setUpMs: number;
  readonly statementsMs: number;
}

/** When the connection of the delivery under way was opened, and when its first statement left. */
const seen = { opened: 0, firstStatement: 0 };
let delay = 0;

function observe({ from, type }: Message): "pass" {
  // The proxy asks when the delay is over; the message left before it.
  const leftAt = performance.now() - delay;
  if (from === "client" && type === "startup")
    Object.assign(seen, { opened: leftAt, firstStatement: 0 });
  if (from === "client" && (type === "Q" || type === "P")) seen.firstStatement ||= leftAt;
  return "pass";
}

async function measure(url: string, { status, outcome, event }: Path, id: string): Promise<Sample> {
  const answer = await post({ url, secret: SECRET }, JSON.stringify(event(id)));
  const answeredAt = performance.now();
  if (answer.status !== status || answer.outcome !== outcome) {
    throw new Error(`${id}: expected ${status} ${outcome}, got ${answer.status} ${answer.outcome}`);
  }
  return {
    setUpMs: seen.firstStatement - seen.opened,
    statementsMs: answeredAt - seen.firstStatement,
  };
}

function options(id: string) {
  return { id, apiVersion: "2026-10-28.endive", livemode: false, created: 1_790_000_000 } as const;
}

function paidInvoice(id: string, amountPaid: number) {
  const facts = {
    id: id.replace("evt", "in"),
    status: "paid",
    customer: "cus_bench",
    currency: "eur",
    total: amountPaid,
    amountPaid,
    livemode: false,
    created: 1_790_000_000,
    changed: 1_790_000_000,
  } as const;
  return invoiceEvent("invoice.paid", facts, options(id));
}

function median(numbers: readonly number[]): number {
  return numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)] ?? Number.NaN;
}

function say(line: string): void {
  console.error(line);
}

async function main(): Promise<void> {
  const endings: (() => Promise<void> | void)[] = [];
  try {
    const run = await claimRun(say);
    endings.push(() => run.remove());
    const cluster = await startTemporaryCluster();
    endings.push(() => cluster.stop());
    const databaseUrl = await createDatabase(cluster, "round_trips", await createTemplate(cluster));
    const proxy = await startProxy(databaseUrl, {
      get delayMs() {
        return delay;
      },
      fate: observe,
    });
    endings.push(() => proxy.close());
    const worker = await startWorker({
      databaseUrl: proxy.route(databaseUrl),
      settings: { STRIPE_WEBHOOK_SECRET: SECRET },
      preferredPort: await freePort(),
      run,
      signal: new AbortController().signal,
      say,
    });
    endings.push(() => worker.stop());
    await report(`${worker.url}/webhooks/stripe/billing`, databaseUrl);
  } finally {
    for (const end of endings.toReversed()) await end();
  }
}

async function report(url: string, databaseUrl: string): Promise<void> {
  const admin = new Client({ connectionString: databaseUrl });
  await admin.connect();
  const samples = new Map<string, { plain: Sample[]; delayed: Sample[] }>();
  for (let round = 0; round < repeats * 2; round++) {
    delay = round % 2 === 0 ? 0 : delayMs;
    for (const path of PATHS) {
      if (path.before) await admin.query(path.before);
      const sample = await measure(url, path, `evt_bench_${round}`);
      // The first of each pays for compiling.
      if (round < 2) continue;
      const kept = samples.get(path.name) ?? { plain: [], delayed: [] };
      samples.set(path.name, kept);
      (delay === 0 ? kept.plain : kept.delayed).push(sample);
    }
  }
  await admin.end();

  console.log(
    `| path | answer | round trips | connection set-up | median with ${delayMs} ms each way |`,
  );
  console.log("|---|---|---|---|---|");
  for (const { name, status, outcome } of PATHS) {
    const { plain = [], delayed = [] } = samples.get(name) ?? {};
    const trips = (part: keyof Sample): string => {
      const extra = median(delayed.map((s) => s[part])) - median(plain.map((s) => s[part]));
      return (extra / (2 * delayMs)).toFixed(1);
    };
    const total = median(delayed.map((s) => s.setUpMs + s.statementsMs));
    console.log(
      `| ${name} | ${status} \`${outcome}\` | ${trips("statementsMs")} | ${trips("setUpMs")} | ${total.toFixed(0)} ms |`,
    );
  }
}

await main();

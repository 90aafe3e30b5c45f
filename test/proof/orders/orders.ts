/**
 * Whatever is told of some invoices, in whatever order it arrives, however often, and with whatever
 * trouble on the way: the books come to an end that the rules allow, and all was done once. Two
 * receivers that are wrong in one point each show that it would be seen.
 */
import * as fc from "fast-check";
import type { Sent } from "../../local/stream.ts";
import { type Drawn, drawn, groupsOf, historyOf } from "./delivery-plan.ts";
import { type OrderRun, runOrder } from "./order-run.ts";
import type { Section } from "../report.ts";
import type { Stage } from "../stage/stage.ts";
import { tell } from "./telling.ts";

/** A tick that overtakes somebody waits in vain for what that one holds. */
const vars = { LOCK_TIMEOUT_MS: "300" } as const;

/** The Workers that the stage must have. */
export const ORDER_WORKERS = {
  receiver: { entry: "test/proof/workers/receiver.ts", vars },
  "last write wins": { entry: "test/proof/workers/last-write-wins.ts", vars },
  "once per event": { entry: "test/proof/workers/once-per-event.ts", vars },
} as const;

const CONTROLS = ["last write wins", "once per event"] as const;
/** Within so many histories a control must be found; a few are enough. */
const CONTROL_RUNS = 60;

export interface OrdersOptions {
  readonly stage: Stage;
  /** Histories for the product. */
  readonly runs: number;
  /** Drawn when it is not given. */
  readonly seed?: number;
  /** A counterexample's, as the report says it: it alone is played again, and no control. */
  readonly path?: string;
  /** For a counterexample to become smaller. */
  readonly shrinkSeconds?: number;
  readonly onHistory?: (played: number) => void;
}

class BooksDiffer extends Error {
  override readonly name = "BooksDiffer";
  readonly run: OrderRun;

  constructor(run: OrderRun) {
    super(run.differences.join("; "));
    this.run = run;
  }
}

/** What was played by one Worker, and the smallest history found after which its books differ. */
interface Search {
  readonly worker: keyof typeof ORDER_WORKERS;
  readonly histories: number;
  readonly events: number;
  readonly deliveries: number;
  readonly disturbances: number;
  readonly found: { readonly drawn: Drawn; readonly run: OrderRun; readonly path: string } | null;
}

export async function proveOrders(options: OrdersOptions): Promise<Section> {
  const seed = options.seed ?? Math.floor(Math.random() * 2 ** 31);
  const product = await search("receiver", { ...options, seed });
  const controls: Search[] = [];
  for (const control of options.path === undefined ? CONTROLS : []) {
    controls.push(await search(control, { ...options, seed, runs: CONTROL_RUNS }));
  }
  return {
    title: "Orders: histories of invoices, delivered in any order, disturbed",
    columns: ["subject", "histories", "events", "deliveries", "disturbances", "found"],
    rows: [rowOf("the product", product), ...controls.map((c) => rowOf(`control: ${c.worker}`, c))],
    notes: [
      `Seed ${seed}: npm run prove -- --only orders --seed ${seed}`,
      "What runs at once may meet otherwise when it is played again.",
    ],
    failures: [
      ...(product.found ? [sentenceOf(product.found, seed)] : []),
      ...controls.flatMap(({ worker, found, histories: played }) =>
        found ? [] : [`${worker}: not found to be wrong in ${played} histories`],
      ),
    ],
  };
}

async function search(
  worker: Search["worker"],
  options: OrdersOptions & { readonly seed: number },
): Promise<Search> {
  const { stage, runs, seed, path: from, shrinkSeconds = 120, onHistory } = options;
  const totals = { histories: 0, events: 0, deliveries: 0, disturbances: 0 };
  let shrinkUntil = Infinity;
  const property = fc.asyncProperty(drawn, async (one) => {
    // What is left of the smaller ones is passed over, and the smallest so far is the answer.
    if (Date.now() > shrinkUntil) return;
    let holds = false;
    try {
      const run = await runOrder(stage, worker, one);
      totals.histories += 1;
      totals.events += run.events;
      totals.deliveries += run.deliveries;
      totals.disturbances += run.disturbances;
      onHistory?.(totals.histories);
      if (run.differences.length > 0) throw new BooksDiffer(run);
      holds = true;
    } finally {
      if (!holds) shrinkUntil = Math.min(shrinkUntil, Date.now() + shrinkSeconds * 1_000);
    }
  });
  const { counterexample, counterexamplePath, errorInstance } = await fc.check<[Drawn]>(property, {
    seed,
    numRuns: runs,
    // The model says how often what is; the first histories are as rich as the last.
    plugins: [fc.unbiased()],
    ...(from === undefined ? {} : { path: from }),
  });
  if (counterexample === null) return { worker, ...totals, found: null };
  const [smallest] = counterexample;
  const path = counterexamplePath ?? "";
  if (!(errorInstance instanceof BooksDiffer)) {
    const which = `${worker}, seed ${seed}, path "${path}": ${describeDrawn(smallest)}`;
    throw new Error(`A history could not be played (${which})`, { cause: errorInstance });
  }
  return { worker, ...totals, found: { drawn: smallest, run: errorInstance.run, path } };
}

function rowOf(subject: string, { found, ...played }: Search): Section["rows"][number] {
  const { histories: count, events, deliveries, disturbances } = played;
  return [subject, count, events, deliveries, disturbances, found ? sizeOf(found.run) : "nothing"];
}

function sizeOf({ events, deliveries }: OrderRun): string {
  return `differs after ${events} events in ${deliveries} deliveries`;
}

function sentenceOf({ drawn: one, run, path }: NonNullable<Search["found"]>, seed: number): string {
  return `${run.differences.join("; ")}, after ${describeDrawn(one)} (seed ${seed}, path "${path}")`;
}

/** What was delivered, in words. */
function describeDrawn(one: Drawn): string {
  return groupsOf(tell(historyOf(one)), one)
    .map(({ deliveries, ticks, disturbance }) => {
      const ticking = Array.from({ length: ticks }, () => "a tick");
      const all = [...deliveries.map(describeDelivery), ...ticking].join(" with ");
      if (disturbance === null) return all;
      const { way, from, n } = disturbance;
      return `${all} [${way}: ${from} message ${n}]`;
    })
    .join(", then ");
}

function describeDelivery({ event, endpoint }: Sent<string>): string {
  const { id, status, metadata } = event.data?.object ?? {};
  const fails = JSON.stringify(metadata ?? {}).includes("attempts") ? ", failing at first" : "";
  return `${event.type} (${String(id)}, ${String(status)}${fails}) to ${endpoint}`;
}

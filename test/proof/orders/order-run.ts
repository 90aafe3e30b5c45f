/**
 * One history, delivered by one plan to one Worker until everything is settled, and the books
 * compared with what the events must lead to.
 */
import { type Books, compareBooks, readBooks } from "../../local/audit.ts";
import { type ExpectedBooks, expectedBooks } from "../../local/books.ts";
import { type Answer, isSuccess } from "../../local/deliver.ts";
import { disturb } from "../crash/crash-points.ts";
import { type Drawn, type Group, groupsOf, historyOf } from "./delivery-plan.ts";
import { passTime, settle } from "../stage/settle.ts";
import type { Delivery, Stage } from "../stage/stage.ts";
import { tell, type Told } from "./telling.ts";

export interface OrderRun {
  readonly events: number;
  readonly deliveries: number;
  readonly disturbances: number;
  /** One sentence each; empty when the books agree. */
  readonly differences: readonly string[];
}

export async function runOrder(stage: Stage, worker: string, drawn: Drawn): Promise<OrderRun> {
  await stage.quiet();
  await stage.clear();
  const told = tell(historyOf(drawn));
  const taken = new Map<string, number>();
  const unanswered = new Set(told);
  let deliveries = 0;
  let disturbances = 0;
  for (const group of groupsOf(told, drawn)) {
    const { answers, disturbed } = await perform(stage, worker, group);
    deliveries += answers.length;
    disturbances += disturbed ? 1 : 0;
    for (const [one, answer] of answers) {
      if (isSuccess(answer)) unanswered.delete(one);
      if (answer.outcome !== "processed" && answer.outcome !== "stored") continue;
      const key = `${one.event.id} at ${one.endpoint}`;
      taken.set(key, (taken.get(key) ?? 0) + 1);
    }
  }
  const recovery = await settle(stage, [...unanswered].map(to(worker)), { worker });
  const expected = expectedBooks(told, { livemode: false });
  const books = await readBooks(stage.rows, expected);
  return {
    events: new Set(told.map(({ event }) => event.id)).size,
    deliveries: deliveries + recovery.deliveries,
    disturbances,
    differences: [
      ...compareBooks(expected, books),
      ...(await findStrangers(stage, books)),
      ...(await compareEffects(stage, expected)),
      ...[...taken].flatMap(([key, times]) =>
        times > 1 ? [`${key} was taken ${times} times`] : [],
      ),
    ],
  };
}

const to =
  (worker: string) =>
  ({ endpoint, event }: Told): Delivery => ({ worker, endpoint, event });

interface Performed {
  readonly answers: readonly (readonly [Told, Answer])[];
  readonly disturbed: boolean;
}

async function perform(
  stage: Stage,
  worker: string,
  { deliveries, ticks, disturbance }: Group,
): Promise<Performed> {
  const tick = async (): Promise<void> => {
    await passTime(stage);
    await stage.tick(worker);
  };
  const act = async (): Promise<Performed["answers"]> => {
    const ticking = Array.from({ length: ticks }, tick);
    const answers = await Promise.all(
      deliveries.map(async (one) => [one, await stage.deliver(to(worker)(one))] as const),
    );
    await Promise.all(ticking);
    return answers;
  };
  if (disturbance === null) return { answers: await act(), disturbed: false };

  // What goes on behind earlier answers would be counted with what is said now.
  await stage.quiet();
  const { way, from, n } = disturbance;
  const conversation = stage.wire.listen({
    at: (boundary) => boundary.from === from && boundary.n === n,
    disturb: async (boundary) => {
      if (way !== "overtaken by a tick") return disturb(stage, { way, boundary });
      await tick();
      return "pass";
    },
  });
  try {
    const answers = await act();
    await stage.quiet();
    await conversation.disturbing;
    const disturbed = conversation.disturbing !== null;
    if (disturbed && way === "kill the Worker") await stage.workerd.revived();
    return { answers, disturbed };
  } finally {
    stage.wire.hangUp();
  }
}

/** Rows that are there beside those of the events and their invoices. */
async function findStrangers(stage: Stage, books: Books): Promise<readonly string[]> {
  const known = {
    webhook_inbox: books.receipts,
    invoices: books.invoices,
    ledger_entries: books.entries,
    outbox: books.messages,
    discrepancies: books.discrepancies,
  };
  const counts = Object.keys(known).map((table) => `(select count(*) from ${table})::int ${table}`);
  const [found] = await stage.rows(`select ${counts.join(", ")}`);
  return Object.entries(known).flatMap(([table, rows]) =>
    found?.[table] === rows.length
      ? []
      : [`${table}: ${String(found?.[table])} rows, of which ${rows.length} are known`],
  );
}

/** Each receipt that was processed was worked on once. */
async function compareEffects(
  stage: Stage,
  { receipts }: ExpectedBooks,
): Promise<readonly string[]> {
  const wanted = new Map<string, number>();
  for (const { eventId, outcome } of receipts) {
    if (outcome === "processed") wanted.set(eventId, (wanted.get(eventId) ?? 0) + 1);
  }
  const rows = await stage.rows("select event_id, count(*)::int as times from effects group by 1");
  const found = new Map(rows.map((row) => [String(row["event_id"]), Number(row["times"])]));
  return [...new Set([...wanted.keys(), ...found.keys()])].flatMap((id) => {
    const times = found.get(id) ?? 0;
    const right = wanted.get(id) ?? 0;
    return times === right ? [] : [`${id} was worked on ${times} times, not ${right}`];
  });
}

/** A short run of the orders' proof, controls included: `npm run prove` plays more histories. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { ORDER_WORKERS, proveOrders } from "./orders.ts";
import { openStage, type Stage } from "../stage/stage.ts";

let stage: Stage;

beforeAll(async () => {
  const opened = await openStage({ workers: ORDER_WORKERS });
  if (opened === null) throw new Error("Bug! No pooler was asked for.");
  stage = opened;
});

afterAll(() => stage.stop());

test("what happens to invoices ends as the rules allow, in whatever order it is told", async () => {
  const section = await proveOrders({ stage, runs: 15, shrinkSeconds: 5 });
  expect(section.failures).toEqual([]);
  const found = section.rows.map((row) => row.at(-1));
  expect(found).toEqual([
    "nothing",
    expect.stringMatching(/^differs after \d+ events/),
    expect.stringMatching(/^differs after \d+ events/),
  ]);
}, 120_000);

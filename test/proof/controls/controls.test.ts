/** Each broken receiver is found out where it must be, by a share of the crash points. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { failuresOf } from "./control-report.ts";
import { CONTROL_WORKERS, CONTROLS, proveControl } from "./controls.ts";
import { openStage, type Stage } from "../stage/stage.ts";

/** Few enough for every test run, and prime, so that each way has its turn. */
const EVERY = 11;

let stage: Stage;

beforeAll(async () => {
  const opened = await openStage({ workers: CONTROL_WORKERS });
  if (opened === null) throw new Error("Bug! Only a pooler can be missing.");
  stage = opened;
});

afterAll(() => stage.stop());

test.for(CONTROLS)("found out: $path.name", async (control) => {
  const report = await proveControl(stage, control, { every: EVERY });
  expect(failuresOf(control, report)).toEqual([]);
  const found = report[control.finds];
  expect(found.length > 0).toBe(control.mustShow !== null);
  expect(found.length < report.runs).toBe(control.mustShow !== null);
  expect(report.undisturbed[control.finds].length > 0).toBe(control.mustShow === null);

  // Who sees nothing is told so, and so is who sees it everywhere.
  const nothing = { lost: [], doubled: [], stuck: [], differing: [] };
  expect(failuresOf(control, { ...report, ...nothing, undisturbed: nothing })).not.toEqual([]);
  if (control.mustShow !== null) {
    const everywhere = { ...report, [control.finds]: report.played };
    expect(failuresOf(control, everywhere)).not.toEqual([]);
  }
});

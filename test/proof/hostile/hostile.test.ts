/** A share of the hostile inputs, and that none of them is reported as a fault of ours. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { HOSTILE_WORKERS, proveHostileInput } from "./hostile.ts";
import { renderSection } from "../report.ts";
import { openStage, type Stage } from "../stage/stage.ts";

/** Few enough for every test run, and prime, so that each kind has its turn. */
const EVERY = 13;
const DRAWN = 120;

let stage: Stage;
const lines: string[] = [];

beforeAll(async () => {
  const opened = await openStage({ workers: HOSTILE_WORKERS, onLog: (line) => lines.push(line) });
  if (opened === null) throw new Error("Bug! Only a pooler can be missing.");
  stage = opened;
});

afterAll(() => stage.stop());

test(
  "hostile input has its defined answers, and leaves no more than its rows",
  { timeout: 180_000 },
  async () => {
    const section = await proveHostileInput({ stage, generated: DRAWN, every: EVERY });
    console.log(renderSection(section));
    expect(section.failures).toEqual([]);

    // What Stripe signed and we cannot read is for a person to look at; nothing else is an error.
    const errors = lines.filter((line) => line.startsWith('{"level":"error"'));
    expect(errors.filter((line) => !line.includes('"invalid":"shape"'))).toEqual([]);
    expect(errors).not.toEqual([]);
  },
);

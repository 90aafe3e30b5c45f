/** A share of the crash points of every path, and that each path goes where its name says. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { proveCrashPoints } from "./crash-points.ts";
import { crashSection } from "./crash-report.ts";
import { ALL_PATHS, fault, WORKERS } from "./paths.ts";
import { openStage, type Stage } from "../stage/stage.ts";

/** What a conversation must hold to be of its kind, by words of its path's name. */
const STATEMENTS: readonly (readonly [words: RegExp, statement: RegExp])[] = [
  [/^sync|^async/, /^insert into "webhook_inbox"/],
  [/contradiction/, /^with news/],
  [/duplicate/, /^update "webhook_inbox" set duplicates/],
  [/throws|refuses|permanent/, /^rollback/],
  [/^(async|tick): .*process/, /^update "webhook_inbox" set processed_at/],
  [/^(async|tick): .*failure/, /^update "webhook_inbox" set attempts/],
  [/^tick/, /^with picked/],
  [/crashed/, /^with crashed/],
  [/left alone/, /^update "webhook_inbox" set processed_at = nu/],
  [/is ignored/, /^update "webhook_inbox" set outcome/],
  [/gives back/, /^with unstarted/],
  [/dispatched|leaves/, /^with picked as materialized \( select id/],
  [/queue/, /^insert into "call_journal"/],
  [/sweeps/, /^update "sweep_runs" set pages/],
  [/retention/, /^with old as materialized \( select id/],
];

/**
 * How many transactions are committed: what crashed is parked, fresh ones are claimed twice and
 * suspects once, and of the others one is the batch's.
 */
const COMMITS: readonly (readonly [words: RegExp, commits: number])[] = [
  [/processes a batch, one/, 4 + 1 + 1],
  [/processes a batch, without/, 4 + 1],
];

/** Few enough for every test run, and prime, so that each way has its turn. */
const EVERY = 37;

let stage: Stage;

beforeAll(async () => {
  const opened = await openStage({ workers: WORKERS, fault });
  if (opened === null) throw new Error("Bug! Only a pooler can be missing.");
  stage = opened;
});

afterAll(() => stage.stop());

test.for(ALL_PATHS)("$name", async (path) => {
  const report = await proveCrashPoints(stage, path, { every: EVERY });
  for (const [words, statement] of STATEMENTS) {
    if (words.test(path.name))
      expect(report.statements).toContainEqual(expect.stringMatching(statement));
  }
  const commits = report.conversation.filter(
    ({ from, type, statement }) => from === "client" && type === "Q" && statement === "commit",
  );
  for (const [words, expected] of COMMITS) {
    if (words.test(path.name)) expect(commits).toHaveLength(expected);
  }
  // Outside of a transaction, a pooler may hand the second statement of a flight to another server.
  expect(report.statements[1]).toMatch(/^begin/);
  expect(report.boundaries).toBeGreaterThan(50);
  expect(report.runs).toBeGreaterThan(3);
  expect(crashSection(path.name, [report]).failures).toEqual([]);
  // What was never disturbed does not hold.
  expect(crashSection(path.name, [{ ...report, runs: 0 }]).failures).toHaveLength(1);
});

/** The doctor: whether ticks, the nightly purge and sweeps have run lately, and what ails them. */
import { expect, test } from "vitest";
import { tick } from "../../src/cron.ts";
import { endpoints } from "../../src/endpoints.ts";
import type { Run } from "../../src/operate/heartbeats.ts";
import { retain } from "../../src/retain.ts";
import { withHeartbeat } from "../../src/watching.ts";
import { collectingContext } from "../worker/testbed.ts";
import { waits } from "../worker/waiting.ts";
import { webhookEndpoint } from "../local/stripe-endpoints.ts";
import { aDeployment, type Complaints, type Deployment, fails, HERE, warns } from "./diagnosing.ts";
import { BOTH } from "./reconciled.ts";

/** What is said once this has happened to a deployment in which all had run a moment ago. */
async function after(...statements: readonly string[]): Promise<Complaints> {
  const { inbox, complaints } = await aDeployment();
  for (const statement of statements) await inbox.rows(statement);
  return complaints();
}

/** As a run leaves its heartbeat; ages as intervals, null: it never was complete. */
const beat = (name: string, started: string, completed: string | null, detail = "{}"): string =>
  `update heartbeats set started_at = now() - interval '${started}', detail = '${detail}',
    completed_at = ${completed === null ? "null" : `now() - interval '${completed}'`}
  where name = '${name}'`;

const FAILED = '{"error": "DatabaseError", "sqlstate": "57014"}';
const TICK_CRON = 'crons in wrangler.toml must have "* * * * *"';
const NIGHT_CRON = 'crons in wrangler.toml must have "17 3 * * *"';

test.each([
  ["no tick that was ever seen", "delete from heartbeats where name = 'tick'", "ever", TICK_CRON],
  ["ticks that ceased", beat("tick", "50 min", "50 min"), "began 50 min ago", TICK_CRON],
  ["ticks that ceased at a failure", beat("tick", "1 day", null, FAILED), "24 h ago", TICK_CRON],
  ["ticks that begin and never end", beat("tick", "40 s", null), "begin and do not end", "tail"],
  [
    "ticks that begin and end no longer",
    beat("tick", "40 s", "1 hour", '{"processed": 2}'),
    "begin and do not end",
    "tail",
  ],
  [
    "ticks that fail",
    beat("tick", "40 s", "1 hour", FAILED),
    "ticks fail: DatabaseError",
    "Look at the log lines of ticks",
  ],
])("%s: that is said, and nothing else", async (_, fault, found, todo) => {
  expect(await after(fault)).toEqual({ "cron: tick": fails(found, todo) });
});

test("a tick that is under way is nothing wrong; one that failed between others deserves a look", async () => {
  expect(await after(beat("tick", "1 s", "61 s"))).toEqual({});
  expect(await after(beat("tick", "30 s", "90 s", FAILED))).toEqual({
    "cron: tick": warns("the last one failed: DatabaseError 57014", "log lines of ticks"),
  });
});

/** A run as the cron makes it. */
async function runs(run: Run, { env }: Pick<Deployment, "env">): Promise<void> {
  const { ctx, settled } = collectingContext();
  const afterwards = (rest: Promise<unknown>): void => ctx.waitUntil(rest);
  const work = () => (run === "tick" ? tick(endpoints, env, afterwards) : retain(env, afterwards));
  await withHeartbeat(run, env, afterwards, work);
  await settled();
}

test.each([["tick"], ["retention"]] as const)(
  "a real %s is seen, and so is one that fails",
  async (run) => {
    const deployment = await aDeployment();
    const { inbox, env, complaints } = deployment;
    await inbox.rows("delete from heartbeats where name = $1", [run]);
    await runs(run, deployment);
    expect(await complaints()).toEqual({});
    await inbox.rows("delete from heartbeats where name = $1", [run]);
    await runs(run, { env: { ...env, MAX_ATTEMPTS: "many" } });
    expect(await complaints()).toMatchObject({
      [`cron: ${run}`]: { found: expect.stringMatching(/fails?: InvalidSetting/) },
    });
  },
);

test("a purge that was never seen is missed once the inbox is older than a day", async () => {
  const { inbox, complaints } = await aDeployment();
  await inbox.rows("delete from heartbeats where name = 'retention'");
  await waits(inbox);
  expect(await complaints()).toMatchObject({ "cron: retention": { state: "skipped" } });
  await inbox.rows("update webhook_inbox set received_at = now() - interval '27 hours'");
  expect(await complaints()).toEqual({ "cron: retention": warns("never seen", NIGHT_CRON) });
});

test.each([
  ["that ceased", beat("retention", "3 days", "3 days"), "began 72 h ago", NIGHT_CRON],
  ["that ceased at a failure", beat("retention", "3 days", null, FAILED), "72 h", NIGHT_CRON],
  ["that fails", beat("retention", "2 h", "26 h", FAILED), "it fails: DatabaseError", "tail"],
  ["that does not end", beat("retention", "2 h", null), "2 h ago, and did not end", "tail"],
])("a nightly purge %s: that is said, and nothing else", async (_, fault, found, todo) => {
  expect(await after(fault)).toEqual({ "cron: retention": warns(found, todo) });
});

const RUNS = "update sweep_runs set";
const ago = (interval: string): string => `now() - interval '${interval}'`;
const LOOK = "last_error of sweep_runs";

test.each([
  ["that has not begun", "delete from sweep_runs", warns("none has begun yet", "look again")],
  [
    "that Stripe refuses",
    `insert into sweep_runs (account, window_from, window_to, last_error, failures)
      values ('own', ${ago("2 h")}, ${ago("1 h")}, 'Stripe:401', 3)`,
    fails("it fails: Stripe:401", LOOK),
  ],
  [
    "that was complete long ago",
    `${RUNS} window_to = ${ago("9 h")}`,
    warns("reaches to 9 h ago", LOOK),
  ],
  [
    "that never came to an end",
    `${RUNS} completed_at = null, started_at = ${ago("5 h")}`,
    warns("the first one began 5 h ago: none is complete", LOOK),
  ],
])("a sweep %s: that is said, and nothing else", async (_, fault, said) => {
  expect(await after(fault)).toEqual({ sweep: said });
});

test("a first sweep that is under way is nothing wrong", async () => {
  expect(await after(`${RUNS} completed_at = null`)).toEqual({});
});

test("each connected account that is swept has a line of its own", async () => {
  const env = { STRIPE_CONNECTED_ACCOUNTS: "acct_good,acct_bad" };
  const { api, inbox, complaints } = await aDeployment({ endpoints: BOTH, env });
  const { endpoints: billing } = api.lists;
  api.lists.endpoints = [...billing, webhookEndpoint(`${HERE}/webhooks/stripe/connect`)];
  expect(Object.keys(await complaints())).toEqual(["sweep of acct_good", "sweep of acct_bad"]);
  await inbox.rows(`insert into sweep_runs (account, window_from, window_to, completed_at, last_error)
    values ('acct_good', ${ago("2 h")}, ${ago("1 h")}, now(), null),
      ('acct_bad', ${ago("2 h")}, ${ago("1 h")}, null, 'Stripe:403')`);
  expect(await complaints()).toEqual({ "sweep of acct_bad": fails("Stripe:403", LOOK) });
});

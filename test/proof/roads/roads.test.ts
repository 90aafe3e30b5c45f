/** The road through a WebSocket, in the real workerd: a share of the crash points, and the switch. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { proveCrashPoints } from "../crash/crash-points.ts";
import { crashSection } from "../crash/crash-report.ts";
import { fault, pathNamed, WORKERS } from "../crash/paths.ts";
import { signatureHeader } from "../../local/sign.ts";
import { anInvoiceEvent } from "../../worker/testbed.ts";
import { openStage, type Stage } from "../stage/stage.ts";
import { bundle, startWorkerd } from "../stage/workerd.ts";
import { switchRoads } from "./switching.ts";

/** Each with all of its runs: without one of its transactions there would be fewer. */
const SHARE = [
  ["sync: new", 7],
  ["async: receive, process after the answer", 10],
  ["queue: message consumed", 11],
] as const;
/** Prime, so that each way has its turn. */
const EVERY = 29;
const EVENTS_EACH = 40;

let stage: Stage;

beforeAll(async () => {
  const hyperdrive = { entry: WORKERS.receiver.entry, webSocket: false };
  const workers = { ...WORKERS, hyperdrive };
  const opened = await openStage({ workers, fault, webSocket: true });
  if (opened === null) throw new Error("Bug! Only a pooler can be missing.");
  stage = opened;
});

afterAll(() => stage.stop());

test.for(SHARE)("%s", async ([name, leastRuns]) => {
  const report = await proveCrashPoints(stage, pathNamed(name), { every: EVERY });
  expect(report.runs).toBeGreaterThanOrEqual(leastRuns);
  expect(crashSection(name, [report]).failures).toEqual([]);
});

test("a deployment that is switched to the other road, and back, loses nothing and doubles nothing", async () => {
  await stage.clear();
  const { underWay, taken } = await switchRoads(stage, {
    workers: ["hyperdrive", "receiver", "hyperdrive"],
    eventsEach: EVENTS_EACH,
    senders: 8,
  });
  // With traffic running, on both.
  expect(underWay).toHaveLength(2);
  for (const deliveries of underWay) expect(deliveries).toBeGreaterThan(0);
  for (const worker of ["hyperdrive", "receiver"]) {
    expect(taken.get(worker)).toBeGreaterThanOrEqual(EVENTS_EACH);
  }
  const [books] = await stage.rows(`select
    (select count(*) from webhook_inbox where outcome = 'processed')::int as processed,
    (select count(*) from webhook_inbox)::int as inbox,
    (select count(*) from invoices where status = 'paid')::int as paid,
    (select count(*) from ledger_entries)::int as entries,
    (select count(*) from outbox)::int as messages,
    (select count(*) from effects)::int as effects,
    (select count(distinct event_id) from effects)::int as told`);
  const all = 3 * EVENTS_EACH;
  expect(books).toEqual({
    processed: all,
    inbox: all,
    paid: all,
    entries: all,
    messages: all,
    effects: all,
    told: all,
  });
});

test("a deployment that left Neon's driver out says so, and Stripe comes back", async () => {
  const lines: string[] = [];
  const secret = "whsec_left_out";
  const name = "left-out";
  const workerd = await startWorkerd(
    [
      {
        name,
        script: await bundle("src/index.ts"),
        databaseUrl: "postgres://inbox:unheard@127.0.0.1:1/inbox",
        webSocketProxy: "ws://127.0.0.1:1/",
        vars: { STRIPE_WEBHOOK_SECRET: secret, STRIPE_LIVEMODE: "false" },
      },
    ],
    (line) => lines.push(line),
  );
  try {
    const body = JSON.stringify(anInvoiceEvent());
    const { status } = await fetch(new URL("/webhooks/stripe", await workerd.url(name)), {
      method: "POST",
      headers: { "stripe-signature": await signatureHeader(body, secret) },
      body,
    });
    expect(status).toBe(503);
  } finally {
    await workerd.stop();
  }
  expect(lines.join("\n")).toContain("take [alias] out of wrangler.toml");
  expect(lines.join("\n")).not.toContain("unheard");
});

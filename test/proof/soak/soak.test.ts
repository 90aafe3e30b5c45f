/** A short soak, and that a soak would see what it is there to see. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { playSoak, type Soak, SOAK_WORKERS } from "./soak.ts";
import { type Planned, unexplained } from "./log.ts";
import { soakSection } from "./report.ts";
import { openStage, type Stage } from "../stage/stage.ts";

const SECONDS = 12;
const SEED = 20_261_128;

let stage: Stage;
let soak: Soak;

beforeAll(async () => {
  const opened = await openStage({ workers: SOAK_WORKERS });
  if (opened === null) throw new Error("Bug! Only a pooler can be missing.");
  stage = opened;
  soak = await playSoak({ stage, seconds: SECONDS, seed: SEED });
}, 180_000);

afterAll(() => stage.stop());

test("the books agree after a short soak", async () => {
  const { failures, rows } = await soakSection(stage, soak);
  expect(failures).toEqual([]);
  // Events and deliveries, of all waves.
  expect(
    rows
      .at(-1)
      ?.slice(1, 3)
      .map(Number)
      .every((count) => count > 100),
  ).toBe(true);
  expect(soak.samples.length).toBeGreaterThan(SECONDS / 2);
});

/** Behind the Worker's back, each undone afterwards. */
const PLANTED: readonly (readonly [what: string, sql: string, failure: RegExp])[] = [
  [
    "an effect that is gone",
    "delete from effects where ctid = (select min(ctid) from effects)",
    /^lost: event \S+: its work was done 0 times, and marked as done 1 times$/,
  ],
  [
    "an effect that came twice",
    "insert into effects select event_id from effects limit 1",
    /^doubled: event \S+: its work was done 2 times, and marked as done 1 times$/,
  ],
  [
    "an effect of an event that nobody sent",
    "insert into effects values ('evt_of_nobody')",
    /^doubled: effects: \d+ rows, expected \d+$/,
  ],
  [
    "an event that is gone",
    "delete from webhook_inbox where outcome = 'processed' and endpoint = 'later' and ctid = (select min(ctid) from webhook_inbox where outcome = 'processed' and endpoint = 'later')",
    /^lost: inbox: \S+ \S+ at later has no row$/,
  ],
  [
    "an event that waits",
    `update webhook_inbox set processed_at = null, outcome = null, payload = '{}'
      where ctid = (select min(ctid) from webhook_inbox where outcome = 'processed')`,
    /^stuck: inbox: .*state is waiting, expected settled$/,
  ],
  [
    "an event that was parked and must not be",
    `update webhook_inbox set processed_at = null, outcome = null, payload = '{}',
      parked_at = now(), last_error = 'Crashed'
      where ctid = (select min(ctid) from webhook_inbox where outcome = 'processed')`,
    /^stuck: inbox: .*state is parked \(Crashed\), expected settled$/,
  ],
  [
    "an event that is not parked and must be",
    "update webhook_inbox set parked_at = null where ctid = (select min(ctid) from webhook_inbox where parked_at is not null)",
    /^stuck: inbox: \S+ \S+ is waiting .*expected parked$/,
  ],
  [
    "a payment that is not booked",
    `with gone as (delete from ledger_entries where id = (select min(id) from ledger_entries)
        returning invoice_id)
      delete from outbox using gone where aggregate_id = invoice_id`,
    /^lost: invoice \S+: 0 ledger entries, expected 1$/,
  ],
  [
    "a message too few",
    "delete from outbox where id = (select min(id) from outbox)",
    /^lost: invoice \S+: 0 outbox messages for 1 ledger entries$/,
  ],
  [
    "a message too many",
    `insert into outbox (aggregate_type, aggregate_id, event_type, payload)
      select aggregate_type, aggregate_id, event_type, payload from outbox limit 1`,
    /^doubled: invoice \S+: 2 outbox messages for 1 ledger entries$/,
  ],
  [
    "another amount",
    "update ledger_entries set amount = amount + 1 where id = (select min(id) from ledger_entries)",
    /^differing: invoice \S+: booked \d+ \S+ by \S+, which says other$/,
  ],
];

test.for(PLANTED)("%s is seen", async ([, sql, failure]) => {
  await stage.keep();
  try {
    await stage.rows(sql);
    const { failures } = await soakSection(stage, soak);
    expect(failures).toContainEqual(expect.stringMatching(failure));
  } finally {
    await stage.restore();
  }
});

test("sessions and connections that stay, and sessions that grow, are failures", async () => {
  expect(await failuresOf({ rest: { backends: 3, busy: 2, closed: true } })).toEqual([
    "2 sessions of Postgres are left when there is nothing to do.",
  ]);
  expect(await failuresOf({ rest: { backends: 0, busy: 0, closed: false } })).toEqual([
    "The Worker keeps connections open when there is nothing to do.",
  ]);
  expect(await failuresOf({ samples: samples(1, 2, 3, 9, 11, 4) })).toEqual([
    "Sessions of Postgres grew from 2 to 11 at a time.",
  ]);
  expect(await failuresOf({ samples: samples(40, 41, 41) })).toHaveLength(1);
  expect(await failuresOf({ samples: samples(1, 2, 3, 9, 10, 4) })).toEqual([]);
});

test("a soak that disturbed nothing, or in a minute not everything, is a failure", async () => {
  const nothing = { cuts: 0, stalls: 0, terminated: 0, killed: 0, restarts: 0 };
  expect(await failuresOf({ seconds: 12, disturbances: nothing })).toHaveLength(5);
  expect(await failuresOf({ seconds: 12, disturbances: { ...nothing, cuts: 1 } })).toEqual([]);
  expect(await failuresOf({ seconds: 60, disturbances: { ...nothing, cuts: 1 } })).toHaveLength(4);
});

test("an error that no disturbance explains is one", () => {
  expect(seen({ outcome: "processed" })).toBeNull();
  expect(seen({ error: "DatabaseUnavailable" })).toBeNull();
  expect(seen({ error: "DatabaseUnavailable", sqlstate: "57P01" })).toBeNull();
  expect(seen({ error: "DatabaseUnavailable", sqlstate: "34000" })).not.toBeNull();
  expect(seen({ error: "23505" })).not.toBeNull();
  expect(seen({ error: "Error" })).not.toBeNull();
  expect(unexplained("Uncaught", PLANNED)).not.toBeNull();
});

test("a planned failure explains what it says of its own event, and nothing else", () => {
  expect(seen({ event: "evt_throws", error: "TypeError" })).toBeNull();
  expect(seen({ event: "evt_refused", error: "22012" })).toBeNull();
  const lost = { error: "DatabaseUnavailable", sqlstate: "22012" };
  expect(seen({ event: "evt_refused", ...lost })).toBeNull();
  expect(seen({ event: "evt_throws", ...lost })).toBe("delivery: DatabaseUnavailable 22012");
  expect(seen({ event: "evt_throws", error: "22012" })).toBe("delivery: 22012");
  expect(seen({ event: "evt_other", error: "TypeError" })).toBe("delivery: TypeError");
  expect(seen({ error: "TypeError" })).toBe("delivery: TypeError");
});

const PLANNED: Planned = new Map([
  ["evt_throws", "throw"],
  ["evt_refused", "statement"],
]);

function samples(...sessions: number[]): Soak["samples"] {
  return sessions.map((backends) => ({ backends, residentBytes: null }));
}

async function failuresOf(some: Partial<Soak>): Promise<readonly string[]> {
  return (await soakSection(stage, { ...soak, ...some })).failures;
}

function seen(fields: object): string | null {
  return unexplained(JSON.stringify({ message: "delivery", ...fields }), PLANNED);
}

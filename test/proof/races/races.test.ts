/** Two paths in every order of their statements; and that the harness sees what goes wrong. */
import { sql } from "drizzle-orm";
import { describe, expect, inject, test } from "vitest";
import type { Connection, Statement } from "../../../src/db/connect.ts";
import { type Choose, everyWay, NotRepeatable, preferring } from "./interleavings.ts";
import { faultsOf } from "./faults.ts";
import { type Pair, PAIRS } from "./pairs.ts";
import type { Fact, Played, Told } from "./racetrack.ts";
import type { Racer } from "./racers.ts";
import { proveRaces, type RaceOptions } from "./races.ts";
import { renderSection } from "../report.ts";

/** Some of each kind, and few enough for every run of the tests; `npm run prove` takes all. */
const SOME = [
  "sync x sync, new",
  "park crashed x park crashed",
  "claim x claim, two due",
  "requeue x process, late",
  "requeue x sync",
  "delete x async",
];

function home(): NonNullable<RaceOptions["home"]> {
  return { cluster: { url: urlOf }, template: inject("template") };
}

function urlOf(database: string): string {
  return new URL(`/${database}`, inject("postgresUrl")).href;
}

/** Merges two sequences, one letter after the other. */
function merge(choose: Choose, a: string, b: string): string {
  const left = { a: a.split(""), b: b.split("") };
  let merged = "";
  for (;;) {
    const options = (["a", "b"] as const).filter((which) => left[which].length > 0);
    if (options.length === 0) return merged;
    merged += (choose(options) === "a" ? left.a : left.b).shift() ?? "";
  }
}

const told = (outcome: Told["outcome"], fact: Partial<Fact>): Told => ({
  who: "A",
  eventId: "evt_1",
  outcome,
  fact: { known: true, settled: false, parked: false, outcome: null, ...fact },
});

/** Locks all, in this order, and begins again when it is the victim of a deadlock. */
const locker = (...keys: number[]): Racer => ({
  run: async (db) => {
    for (let locked = false; !locked;) locked = await lockAll(db, keys);
  },
});

describe("every way", () => {
  test.each([
    ["abc", "xyz", 20],
    ["abcd", "wxyz", 70],
    ["abc", "", 1],
    ["", "", 1],
  ])("to merge %j and %j comes once", async (a, b, count) => {
    const merged: string[] = [];
    const play = async (choose: Choose): Promise<void> => void merged.push(merge(choose, a, b));
    expect(await everyWay(play, count)).toEqual({ ways: count, complete: true });
    expect(new Set(merged).size).toBe(count);
    expect(merged).toHaveLength(count);
  });

  test("beyond the most that is allowed is not tried, and said to be missing", async () => {
    const { ways, complete } = await everyWay(async (choose) => {
      merge(choose, "abc", "xyz");
    }, 19);
    expect({ ways, complete }).toEqual({ ways: 19, complete: false });
  });

  test.each([
    ["offers something else", (plays: number) => (plays > 1 ? [["c"]] : [["a", "b"]])],
    ["ends sooner", (plays: number) => (plays > 1 ? [] : [["a", "b"]])],
  ])("of what %s after the same choices is refused", async (_, offers) => {
    let plays = 0;
    const play = async (choose: Choose): Promise<void> => {
      plays += 1;
      for (const options of offers(plays)) choose(options);
    };
    await expect(everyWay(play, 10)).rejects.toThrow(NotRepeatable);
  });

  test("who is preferred goes first, for as long as there is something left", () => {
    expect(merge(preferring("b"), "abc", "xyz")).toBe("xyzabc");
  });
});

describe("a race is at fault", () => {
  const books = new Map([
    [
      "webhook_inbox",
      [{ event_id: "evt_1", outcome: "processed", processed_at: true, attempts: 1 }],
    ],
    ["effects", [{ event_id: "evt_1" }]],
  ]);
  const DONE = { settled: true, outcome: "processed" } as const;
  const played: Played = {
    steps: [],
    told: [told("processed", DONE)],
    effects: { before: new Map(), after: new Map([["evt_1", 1]]) },
    books,
  };
  const faults = (over: Partial<Played>) =>
    faultsOf({ ...played, ...over }, [new Map(), books], {});

  test("not when it ends as one serial order does, and every word was true", () => {
    expect(faults({})).toEqual({ lost: [], doubled: [], stuck: [], other: [] });
  });

  test.each([
    ["processed", {}],
    ["processed", { settled: true, outcome: "ignored" }],
    ["duplicate", { known: false }],
    ["duplicate", { parked: true }],
    ["ignored", DONE],
    ["stored", { known: false }],
    ["needs_review", DONE],
    ["failed", { known: false }],
    ["threw", DONE],
  ] as const)("when %j is said while %j is committed", (outcome, fact) => {
    const words = [...played.told, told(outcome, fact)];
    const effects = {
      before: new Map(),
      after: new Map([["evt_1", outcome === "processed" ? 2 : 1]]),
    };
    expect(faults({ told: words, effects }).other).toHaveLength(1);
  });

  test("when more was done than said", () => {
    expect(faults({ told: [] }).other).toEqual([`1 effects of evt_1, and 0 were told "processed"`]);
  });

  test("when serial orders are no better, but work is done twice or not at all", () => {
    const inbox = books.get("webhook_inbox") ?? [];
    const twice = new Map([...books, ["effects", [{ event_id: "evt_1" }, { event_id: "evt_1" }]]]);
    expect(faultsOf({ ...played, books: twice }, [twice], {}).doubled).toHaveLength(1);
    const never = new Map([["webhook_inbox", inbox]]);
    expect(faultsOf({ ...played, books: never }, [never], {}).lost).toHaveLength(1);
  });

  test("when an event waits for ever", () => {
    const waits = new Map([["webhook_inbox", [{ processed_at: false, parked_at: false }]]]);
    expect(faults({ books: waits }).stuck).toHaveLength(1);
  });
});

test("some pairs, in every order, end as a serial order does, and every control is caught", async () => {
  const pairs = PAIRS.filter(({ name }) => SOME.includes(name));
  expect(pairs).toHaveLength(SOME.length);
  const section = await proveRaces({ home: home(), pairs });
  expect(section.failures, renderSection(section)).toEqual([]);
  // Otherwise nobody met anybody.
  const [first] = section.rows;
  expect(first?.[0]).toBe("sync x sync, new");
  expect(first?.[3]).toBeGreaterThan(0);
});

test("a control that is not caught is a failure", async () => {
  const [harmless] = PAIRS.filter(({ name }) => name === "claim x claim, two due");
  const controls = harmless ? [{ ...harmless, guiltyOf: "doubled" as const }] : [];
  const { failures } = await proveRaces({ home: home(), pairs: [], controls });
  expect(failures).toEqual([
    "The harness does not see what goes wrong with: claim x claim, two due",
  ]);
});

test("two that lock each other out are told apart by Postgres, and both come to their end", async () => {
  const deadlock: Pair = {
    name: "deadlock",
    racers: [locker(1, 2), locker(2, 1)],
    beginsAtOnce: true,
  };
  const section = await proveRaces({ home: home(), pairs: [deadlock], controls: [], lanes: 1 });
  expect(section.failures).toEqual([]);
  expect(section.rows[0]?.[3]).toBeGreaterThan(0);
});

/** @returns false when it was the victim of a deadlock. */
async function lockAll(db: Connection, keys: readonly number[]): Promise<boolean> {
  const send = async (statement: Statement): Promise<unknown> => Promise.all(db.send([statement]));
  await send({ text: "begin" });
  try {
    for (const key of keys) await send(db.compile(sql`select pg_advisory_xact_lock(${key}::int)`));
    return true;
  } catch {
    return false;
  } finally {
    await send({ text: "commit" });
  }
}

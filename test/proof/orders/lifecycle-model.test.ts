/** The histories and plans that are drawn, and what the books must be after known ones. */
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { expectedBooks } from "../../local/books.ts";
import {
  type Drawn,
  drawn,
  groupsOf,
  historyOf,
  MOST_AT_ONCE,
  type Move,
} from "./delivery-plan.ts";
import {
  type Change,
  type History,
  type Invoice,
  invoices,
  legalSteps,
  LIFECYCLE,
  PLAINLY,
  type State,
  type Stray,
  type Telling,
} from "./lifecycle-model.ts";
import { tell } from "./telling.ts";

const CONTRADICTIONS: readonly Change[] = ["pay_other_amount", "void_paid", "pay_void"];
const RANK = ["unheard", "draft", "open", "uncollectible", "paid"];

describe("a history", () => {
  test("never falls back to an earlier state, whatever is left out of it", () => {
    const some = invoices.chain(({ steps }) => fc.subarray([...steps]));
    fc.assert(
      fc.property(some, (steps) => {
        let before: State = "unheard";
        for (const { change, state } of legalSteps(steps)) {
          if (CONTRADICTIONS.includes(change)) expect(["paid", "void"]).toContain(before);
          else if (before === "void" || before === "deleted") expect(state).toBe(before);
          else if (state === "void") expect(["unheard", "open", "uncollectible"]).toContain(before);
          else if (state === "deleted") expect(["unheard", "draft"]).toContain(before);
          else expect(RANK.indexOf(state)).toBeGreaterThanOrEqual(RANK.indexOf(before));
          before = state;
        }
      }),
    );
  });

  test("is told alike each time, each event at each endpoint once", () => {
    fc.assert(
      fc.property(drawn.map(historyOf), (history) => {
        const told = tell(history);
        expect(tell(history)).toEqual(told);
        const keys = told.map(({ endpoint, event }) => `${event.id} at ${endpoint}`);
        expect(new Set(keys).size).toBe(keys.length);
      }),
    );
  });

  test("can have every change and come to every end", () => {
    const changes = new Set<string>();
    const ends = new Set<string>();
    for (const one of fc.sample<Drawn>(drawn, { numRuns: 2_000, seed: 4 })) {
      for (const { invoice } of one.stories) {
        for (const { change } of invoice.steps) changes.add(change);
      }
      for (const end of endsAfter(historyOf(one))) ends.add(end);
    }
    const all = Object.values(LIFECYCLE).flatMap((allowed) => Object.keys(allowed));
    expect([...changes].toSorted()).toEqual([...new Set(all)].toSorted());
    expect([...ends]).toEqual(expect.arrayContaining(KNOWN.map(({ end }) => end)));
  });
});

describe("a plan", () => {
  test("delivers everything, in the order of time, and at most eight at once", () => {
    fc.assert(
      fc.property(drawn, (one) => {
        const told = tell(historyOf(one));
        const groups = groupsOf(told, one);
        expect(new Set(groups.flatMap(({ deliveries }) => deliveries))).toEqual(new Set(told));
        for (const { deliveries, ticks } of groups) {
          expect(deliveries.length + ticks).toBeGreaterThan(0);
          expect(deliveries.length + ticks).toBeLessThanOrEqual(MOST_AT_ONCE);
        }
        const ticks = groups.reduce((sum, group) => sum + group.ticks, 0);
        expect(ticks).toBe(one.ticks.length);
      }),
    );
  });

  test("without moves, everything is delivered as it happens, one by one", () => {
    expect(typesIn(planOf([]))).toEqual([
      ["invoice.created"],
      ["invoice.finalized"],
      ["invoice.paid"],
    ]);
  });

  test("an event is delivered when, as often, and beside what its moves say", () => {
    const disturbance = { way: "cut before", from: "client", n: 3 } as const;
    const plan = planOf([
      { ...MOVE, of: 9, at: 5, atOnce: true, disturbance },
      { ...MOVE, of: 9, at: 35 },
      { ...MOVE, of: 3, at: 40, n: 7 },
    ]);
    const late = { ...plan, ticks: [{ at: 36, atOnce: true, disturbance: null }] };
    expect(typesIn(late)).toEqual([
      ["invoice.created", "invoice.paid"],
      ["invoice.paid", "tick"],
      ["invoice.finalized"],
    ]);
    const disturbances = groupsOf(tell(historyOf(late)), late).map((group) => group.disturbance);
    expect(disturbances).toEqual([disturbance, null, null]);
  });
});

const MOVE: Move = { of: 0, n: 0, at: 0, atOnce: false, disturbance: null };

/** Created, finalized and paid, at the places 0, 3 and 9. */
function planOf(moves: readonly Move[]): Drawn {
  const invoice = anInvoice(["create", "finalize", "pay"], { places: [0, 3, 9] });
  return { ticks: [], strays: [], stories: [{ invoice, moves }] };
}

function typesIn(plan: Drawn): string[][] {
  return groupsOf(tell(historyOf(plan)), plan).map(({ deliveries, ticks }) => [
    ...deliveries.map(({ event }) => event.type),
    ...Array.from({ length: ticks }, () => "tick"),
  ]);
}

interface Options {
  readonly told?: Telling;
  readonly free?: boolean;
  readonly places?: readonly number[];
}

function anInvoice(changes: readonly Change[], options: Options = {}): Invoice {
  const { told = PLAINLY, free = false, places = [] } = options;
  return {
    free,
    steps: changes.map((change, index) => ({ change, place: places[index] ?? index, told })),
  };
}

const EITHER = "paid 1 void_after_paid or void 0 paid_after_void";
const OLD: Telling = { ...PLAINLY, apiVersion: "2018-10-31" };

interface Known extends Options {
  readonly changes: readonly Change[];
  readonly end: string;
}

/** Histories of one invoice, and the ends that they may come to. */
const KNOWN: readonly Known[] = [
  { changes: ["create", "edit"], end: "draft 0" },
  { changes: ["create", "edit"], told: OLD, end: "draft|open 0" },
  { changes: ["create", "delete"], end: "draft 0" },
  { changes: ["create", "finalize", "fail"], end: "open 0" },
  { changes: ["create", "finalize", "fail", "pay"], end: "paid 1" },
  { changes: ["create", "finalize", "pay"], free: true, end: "paid 0" },
  { changes: ["finalize", "mark_uncollectible"], end: "uncollectible 0" },
  { changes: ["finalize", "mark_uncollectible", "pay"], end: "paid 1" },
  { changes: ["finalize", "mark_uncollectible", "void"], end: "void 0" },
  { changes: ["create", "finalize", "void"], end: "void 0" },
  { changes: ["pay", "pay_other_amount"], end: "paid 2 payment_mismatch" },
  {
    changes: ["pay", "pay_other_amount"],
    free: true,
    end: "paid 1 or paid 1 payment_mismatch",
  },
  { changes: ["pay", "void_paid"], end: EITHER },
  { changes: ["void", "pay_void"], end: EITHER },
];

describe("the books after", () => {
  test.for(KNOWN)("$changes, $end", ({ changes, end, ...options }) => {
    expect(endsAfter({ invoices: [anInvoice(changes, options)], strays: [] })).toEqual([end]);
  });

  test("a payment that two types tell of, twice each, at two endpoints", () => {
    const told: Telling = {
      ...PLAINLY,
      payment: ["invoice.paid", "invoice.payment_succeeded"],
      copies: 2,
      to: ["billing", "later"],
    };
    const books = booksAfter({ invoices: [anInvoice(["pay"], { told })], strays: [] });
    expect(books.receipts.map(({ outcome }) => outcome)).toEqual(Array(8).fill("processed"));
    expect(books.invoices.get("in_1p0")?.[0]?.entries).toEqual([
      { amount: 1_000, currency: "eur", eventIds: ["evt_1p1", "evt_1p2", "evt_1p3", "evt_1p4"] },
    ]);
  });

  test.for<[Stray["kind"], string]>([
    ["unrelated", "billing no_handler, later no_handler"],
    ["livemode", "billing livemode, later livemode"],
    ["test_id", "billing test_id, later test_id"],
    ["thin", "billing thin, later thin"],
    ["connected", "billing account, later account, connect no_handler"],
    ["own_at_connect", "connect account"],
  ])("%s: nothing, for a reason", ([kind, reasons]) => {
    const books = booksAfter({ invoices: [], strays: [{ kind, invoice: 0, place: 0 }] });
    const given = books.receipts.map(
      ({ endpoint, ignoredReason }) => `${endpoint} ${ignoredReason}`,
    );
    expect(given.join(", ")).toBe(reasons);
    expect(books.invoices.size).toBe(0);
  });
});

function booksAfter(history: History) {
  return expectedBooks(tell(history), { livemode: false });
}

/** For each invoice: states, how many sums, contradictions, of each end it may have come to. */
function endsAfter(history: History): string[] {
  return [...booksAfter(history).invoices.values()].map((ends) =>
    ends
      .map(({ statuses, entries, discrepancies }) =>
        [statuses.join("|"), entries.length, ...discrepancies].join(" "),
      )
      .join(" or "),
  );
}

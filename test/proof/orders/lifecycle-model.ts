/**
 * What Stripe may tell of some invoices: histories drawn from a model of an invoice's lifecycle,
 * with what is told badly, too often or to the wrong endpoint. Whatever is taken out of a history,
 * the rest is one; so that a counterexample shrinks to the changes that matter. Pure.
 */
import * as fc from "fast-check";
import { API_VERSIONS, type ApiVersion, type InvoiceStatus } from "../../local/invoice-shapes.ts";
import type { Failure } from "../workers/effect.ts";

/** The last three contradict what was told before; Stripe does not allow them, and they arrive. */
export type Change =
  | "create"
  | "edit"
  | "delete"
  | "finalize"
  | "fail"
  | "mark_uncollectible"
  | "void"
  | "pay"
  | "pay_other_amount"
  | "void_paid"
  | "pay_void";

/** Unheard of: what happened before may have been told before the endpoint existed. */
export type State = InvoiceStatus | "unheard" | "deleted";

export type Where = "billing" | "later" | "connect";

/** How a change is told. */
export interface Telling {
  readonly apiVersion: ApiVersion;
  readonly customer: "id" | "object" | "deleted" | "null";
  /** The types that tell of it, where it is a payment. */
  readonly payment: readonly ("invoice.paid" | "invoice.payment_succeeded")[];
  /** Whether an `invoice.updated` tells of it too. */
  readonly beside: boolean;
  /** Event objects of each type. */
  readonly copies: 1 | 2;
  readonly to: readonly Where[];
  /** What its handlers do at first. */
  readonly failure: Failure | null;
}

/** One change of an invoice. */
export interface Step {
  readonly change: Change;
  /** In a life with everything in it; it stays the same whatever else is taken out. */
  readonly place: number;
  readonly told: Telling;
}

export interface Invoice {
  readonly free: boolean;
  readonly steps: readonly Step[];
}

/** An event that speaks of a payment, and must change nothing. */
export interface Stray {
  readonly kind: "livemode" | "test_id" | "thin" | "connected" | "own_at_connect" | "unrelated";
  /** The invoice that it speaks of, as an index. */
  readonly invoice: number;
  /** When it happens, as a place in a life. */
  readonly place: number;
}

export interface History {
  readonly invoices: readonly Invoice[];
  readonly strays: readonly Stray[];
}

export const MOST_INVOICES = 4;
/** For each invoice: several fall on one place, and most on places where nothing happens. */
const MOST_ODDITIES = 28;

/** What may happen in which state, and what the state is then. */
export const LIFECYCLE: Readonly<Record<State, Readonly<Partial<Record<Change, State>>>>> = {
  unheard: {
    create: "draft",
    edit: "draft",
    delete: "deleted",
    finalize: "open",
    fail: "open",
    mark_uncollectible: "uncollectible",
    void: "void",
    pay: "paid",
  },
  draft: { edit: "draft", delete: "deleted", finalize: "open" },
  open: {
    edit: "open",
    fail: "open",
    mark_uncollectible: "uncollectible",
    void: "void",
    pay: "paid",
  },
  uncollectible: { edit: "uncollectible", fail: "uncollectible", void: "void", pay: "paid" },
  paid: { edit: "paid", pay_other_amount: "paid", void_paid: "void" },
  void: { edit: "void", pay_void: "paid" },
  deleted: {},
};

/** A life with everything in it, and how often in a hundred lives each of its changes is there. */
export const LIFE: readonly (readonly [Change, number])[] = [
  ["create", 85],
  ["edit", 25],
  ["delete", 4],
  ["finalize", 85],
  ["fail", 25],
  ["edit", 15],
  ["fail", 10],
  ["mark_uncollectible", 12],
  ["void", 12],
  ["pay", 80],
  ["edit", 12],
  ["pay_other_amount", 6],
  ["void_paid", 4],
  ["pay_void", 20],
];

/** The steps that can happen after those before them; the others are left out. */
export function legalSteps<Some extends Pick<Step, "change">>(
  steps: readonly Some[],
): readonly (Some & { readonly state: State })[] {
  let state: State = "unheard";
  return steps.flatMap((step) => {
    const next: State | undefined = LIFECYCLE[state][step.change];
    if (next === undefined) return [];
    state = next;
    return [{ ...step, state }];
  });
}

/** So often in a hundred; shrinks to the likely, and to nothing in between. */
export function sometimes<Likely, Odd>(
  percent: number,
  odd: fc.Arbitrary<Odd>,
  likely: Likely,
): fc.Arbitrary<Likely | Odd> {
  return fc.oneof(
    { withCrossShrink: true },
    { arbitrary: fc.constant(likely), weight: 100 - percent },
    { arbitrary: fc.noShrink(odd), weight: percent },
  );
}

const failures: fc.Arbitrary<Failure> = fc.record({
  how: fc.constantFrom("throw", "statement", "parameter"),
  attempts: fc.integer({ min: 1, max: 3 }),
});

export const PLAINLY: Telling = {
  apiVersion: "2026-10-28.endive",
  customer: "id",
  payment: ["invoice.paid"],
  beside: false,
  copies: 1,
  to: ["billing"],
  failure: null,
};

const tellings: fc.Arbitrary<Telling> = fc.record({
  // The oldest has no status: what is then known of the state is the type alone.
  apiVersion: fc.oneof(
    { weight: 4, arbitrary: fc.constantFrom(...API_VERSIONS.toReversed()) },
    { weight: 1, arbitrary: fc.constant(API_VERSIONS[0]) },
  ),
  customer: sometimes(40, fc.constantFrom("object", "deleted", "null"), "id"),
  payment: fc.constantFrom<Telling["payment"][]>(
    ["invoice.paid"],
    ["invoice.payment_succeeded"],
    ["invoice.paid", "invoice.payment_succeeded"],
  ),
  beside: sometimes(40, fc.constant(true), false),
  copies: sometimes<1, 2>(15, fc.constant(2), 1),
  to: sometimes<Telling["to"], Telling["to"]>(
    60,
    fc.constantFrom<Telling["to"][]>(["later"], ["billing", "later"]),
    ["billing"],
  ),
  failure: sometimes(15, failures, null),
});

/** Shrinks to itself: no place is simpler than another. */
export const places = fc.noShrink(fc.nat({ max: LIFE.length - 1 }));

/** What of a life happens. */
const happenings = fc.tuple(
  ...LIFE.map(([, percent]) => sometimes(percent, fc.constant(true), false)),
);

/** What is not told plainly. */
const oddities = fc.array(fc.record({ place: places, told: tellings }), {
  maxLength: MOST_ODDITIES,
  size: "max",
});

export const invoices: fc.Arbitrary<Invoice> = fc
  .record({
    odd: oddities,
    free: sometimes(8, fc.constant(true), false),
    happens: happenings,
  })
  .map(({ odd, free, happens }) => {
    const told = new Map(odd.map((one) => [one.place, one.told]));
    const all = LIFE.map(([change], place) => ({
      change,
      place,
      told: told.get(place) ?? PLAINLY,
    }));
    return { free, steps: legalSteps(all.filter(({ place }) => happens[place])) };
  });

export const strays: fc.Arbitrary<Stray> = fc.record({
  kind: fc.constantFrom("unrelated", "livemode", "test_id", "thin", "connected", "own_at_connect"),
  invoice: fc.nat({ max: MOST_INVOICES - 1 }),
  place: places,
});

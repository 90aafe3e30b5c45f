/**
 * Histories and when they are delivered: events out of their order, again and again, at once with
 * others, while the cron ticks or the wire is cut. An event is known by the change that it tells of,
 * so that whatever is taken out, the rest is delivered as before. Pure.
 */
import * as fc from "fast-check";
import type { Way } from "../crash/crash-points.ts";
import {
  type History,
  type Invoice,
  invoices,
  LIFE,
  MOST_INVOICES,
  places,
  sometimes,
  type Stray,
  strays,
} from "./lifecycle-model.ts";
import type { Told } from "./telling.ts";

/**
 * What happens, once, to the first of those who speak at once that comes to this message: so it
 * happens to the others when that one is taken out.
 */
export interface Disturbance {
  /** Overtaken: the message is held until a tick is over, for which every lease has ended. */
  readonly way: Way | "overtaken by a tick";
  readonly from: "client" | "server";
  /** Of one side of one connection, from 1. */
  readonly n: number;
}

/** When something reaches the Worker. */
export interface Moment {
  /** In tenths of a place: what is told of the change at place 3 begins at 30, unless it is moved. */
  readonly at: number;
  /** Together with whatever was to happen before. */
  readonly atOnce: boolean;
  readonly disturbance: Disturbance | null;
}

/** A delivery at another time than when the event happens. An event can have several. */
export interface Move extends Moment {
  /** The place of the change that the event tells of. */
  readonly of: number;
  /** Which of that change's deliveries, modulo their number. */
  readonly n: number;
}

export interface Story {
  readonly invoice: Invoice;
  readonly moves: readonly Move[];
}

export interface Drawn {
  /** What is stored and waits, or is at work, is due to each of them. */
  readonly ticks: readonly Moment[];
  readonly strays: readonly Stray[];
  readonly stories: readonly Story[];
}

/** What happens at once. */
export interface Group {
  readonly deliveries: readonly Told[];
  readonly ticks: number;
  readonly disturbance: Disturbance | null;
}

/** For each invoice: most of them are of places where nothing happens. */
const MOST_MOVES = 40;
const MOST_TICKS = 2;
export const MOST_AT_ONCE = 8;
/** What an event takes that is stored, and processed behind the answer. */
const MESSAGES = { client: 46, server: 77 } as const;

// A Worker that was killed takes its time to come back.
const ways = fc.oneof(
  { weight: 4, arbitrary: fc.constant("cut before" as const) },
  { weight: 4, arbitrary: fc.constant("cut half" as const) },
  { weight: 4, arbitrary: fc.constant("cut after" as const) },
  { weight: 4, arbitrary: fc.constant("terminate the backend" as const) },
  { weight: 9, arbitrary: fc.constant("overtaken by a tick" as const) },
  { weight: 1, arbitrary: fc.constant("kill the Worker" as const) },
);

const disturbances: fc.Arbitrary<Disturbance> = fc.oneof(
  fc.record({
    way: ways,
    from: fc.constant("client" as const),
    n: fc.integer({ min: 1, max: MESSAGES.client }),
  }),
  fc.record({
    way: ways,
    from: fc.constant("server" as const),
    n: fc.integer({ min: 1, max: MESSAGES.server }),
  }),
);

const moment = {
  disturbance: sometimes(10, disturbances, null),
  atOnce: sometimes(60, fc.constant(true), false),
  at: fc.noShrink(fc.nat({ max: 10 * LIFE.length - 1 })),
} as const;

const moves: fc.Arbitrary<Move> = fc.record({
  ...moment,
  of: places,
  n: fc.noShrink(fc.nat({ max: 11 })),
});

const stories: fc.Arbitrary<Story> = fc.record({
  moves: fc.array(moves, { maxLength: MOST_MOVES, size: "max" }),
  invoice: invoices,
});

export const drawn: fc.Arbitrary<Drawn> = fc.record({
  ticks: fc.array(fc.record(moment), { maxLength: MOST_TICKS }),
  strays: fc.array(strays, { maxLength: 1 }),
  stories: fc.array(stories, { minLength: 1, maxLength: MOST_INVOICES, size: "max" }),
});

/** What happens, whenever it is delivered. */
export function historyOf({ stories: all, strays: some }: Drawn): History {
  return { invoices: all.map(({ invoice }) => invoice), strays: some };
}

/** What happens at once, in the order of time; `told` is what the stories and the strays tell. */
export function groupsOf(told: readonly Told[], plan: Drawn): readonly Group[] {
  const groups: Group[] = [];
  for (const { delivery, atOnce, disturbance } of timetable(told, plan)) {
    const deliveries = delivery ? [delivery] : [];
    const ticks = delivery ? 0 : 1;
    const last = groups.at(-1);
    if (last && atOnce && last.deliveries.length + last.ticks < MOST_AT_ONCE) {
      groups[groups.length - 1] = {
        deliveries: [...last.deliveries, ...deliveries],
        ticks: last.ticks + ticks,
        disturbance: last.disturbance ?? disturbance,
      };
    } else {
      groups.push({ deliveries, ticks, disturbance });
    }
  }
  return groups;
}

interface Planned extends Moment {
  /** Null: a tick. */
  readonly delivery: Told | null;
}

function timetable(told: readonly Told[], { stories: all, ticks }: Drawn): readonly Planned[] {
  const deliveries = told.flatMap((delivery): Planned[] => {
    const own = all[delivery.story ?? -1]?.moves.filter((move) => isOf(delivery, move)) ?? [];
    return own.length > 0
      ? own.map((move) => ({ ...move, delivery }))
      : [{ delivery, at: 10 * delivery.place, atOnce: false, disturbance: null }];
  });
  const ticking = ticks.map((tick) => ({ ...tick, delivery: null }));
  return [...deliveries, ...ticking].toSorted((a, b) => a.at - b.at);
}

function isOf({ place, n, count }: Told, move: Move): boolean {
  return place === move.of && n === move.n % count;
}

/** What the charts of the overview show, from figures made up for it. Pure. */
import { expect, test } from "vitest";
import { diagramsOf } from "../../src/http/pages/diagrams.ts";
import { figuresWith, NOW } from "./healthy-figures.ts";

const at = (time: string) => new Date(`2026-11-29T${time}Z`);
const rates = (received: number, processed: number, ignored: number) => ({
  received,
  processed,
  ignored,
});
const seconds = (p50: number | null, p95: number | null) => ({ p50, p95, p99: p95 });

const zerosBut = (length: number, some: Readonly<Record<number, number>>) =>
  Array.from({ length }, (_, nth) => some[nth] ?? 0);

const valuesOf = (diagram: ReturnType<typeof diagramsOf>[number] | undefined) =>
  Object.fromEntries((diagram?.series ?? []).map(({ name, values }) => [name, values]));

test("the last hour has sixty minutes, the oldest first; those without events are zeros", () => {
  const byMinute = [
    { minute: at("07:31:00"), ...rates(1, 2, 3) },
    { minute: at("08:29:00"), ...rates(4, 0, 0) },
    { minute: at("08:30:00"), ...rates(5, 6, 7) },
  ];
  const [hour] = diagramsOf(figuresWith({ lastHour: { byMinute } }), NOW);
  expect(hour?.times).toEqual(
    Array.from({ length: 60 }, (_, nth) => new Date(at("07:31:00").getTime() + nth * 60_000)),
  );
  expect(valuesOf(hour)).toEqual({
    Received: zerosBut(60, { 0: 1, 58: 4, 59: 5 }),
    Processed: zerosBut(60, { 0: 2, 59: 6 }),
    Ignored: zerosBut(60, { 0: 3, 59: 7 }),
  });
});

test("the last day has twenty-four hours, which end where counting does", () => {
  const byHour = [
    { hour: new Date("2026-11-28T06:00:00Z"), ...rates(1, 2, 3), ...seconds(0.5, 9) },
    { hour: at("05:00:00"), ...rates(4, 0, 5), ...seconds(null, null) },
    // Counted by nobody yet.
    { hour: at("06:00:00"), ...rates(99, 99, 99), ...seconds(99, 99) },
  ];
  const lastDay = { countedUntil: at("06:00:00"), byHour };
  const [, day, took] = diagramsOf(figuresWith({ lastDay }), NOW);
  const hours = Array.from(
    { length: 24 },
    (_, nth) => new Date(Date.parse("2026-11-28T06:00:00Z") + nth * 3_600_000),
  );
  for (const diagram of [day, took]) {
    expect(diagram?.times).toEqual(hours);
    expect(diagram?.stepMs).toBe(3_600_000);
  }
  expect(valuesOf(day)).toEqual({
    Received: zerosBut(24, { 0: 1, 23: 4 }),
    Processed: zerosBut(24, { 0: 2 }),
    Ignored: zerosBut(24, { 0: 3, 23: 5 }),
  });
});

test("an hour in which nothing was processed has no time, rather than a time of zero", () => {
  const byHour = [
    { hour: at("06:00:00"), ...rates(2, 2, 0), ...seconds(0.5, 9) },
    { hour: at("07:00:00"), ...rates(4, 0, 0), ...seconds(null, null) },
  ];
  const [, , took] = diagramsOf(figuresWith({ lastDay: { byHour } }), NOW);
  const unknown = Array.from({ length: 22 }, () => null);
  expect(valuesOf(took)).toEqual({
    "Half within, in s": [...unknown, 0.5, null],
    "95 % within, in s": [...unknown, 9, null],
  });
});

test("before any hour is counted, the day ends with the one that is now", () => {
  const [, day] = diagramsOf(figuresWith({ lastDay: { countedUntil: null } }), NOW);
  expect(day?.times).toHaveLength(24);
  expect(day?.times.at(-1)).toEqual(at("08:00:00"));
});

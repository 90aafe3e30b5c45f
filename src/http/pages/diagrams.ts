/** What the charts of the overview show, from the figures. Pure. */
import type { Figures } from "../../operate/figures.ts";
import type { ChartData } from "./chart.tsx";

export type Diagrams = readonly ChartData[];

const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;

export function diagramsOf({ lastHour, lastDay }: Figures, now: Date): Diagrams {
  const minutes = timesUntil(now, MINUTE_MS, 60);
  const hours = timesUntil(lastDay.countedUntil ?? now, HOUR_MS, 24);
  const minute = (time: Date) => lastHour.byMinute.find((one) => isSame(one.minute, time));
  const hour = (time: Date) => lastDay.byHour.find((one) => isSame(one.hour, time));
  return [
    {
      title: "The last hour, by minute",
      unit: "events",
      times: minutes,
      stepMs: MINUTE_MS,
      series: [
        { name: "Received", as: "bars", values: minutes.map((t) => minute(t)?.received ?? 0) },
        { name: "Processed", as: "line", values: minutes.map((t) => minute(t)?.processed ?? 0) },
        { name: "Ignored", as: "line", values: minutes.map((t) => minute(t)?.ignored ?? 0) },
      ],
    },
    {
      title: "The last day, by hour",
      unit: "events",
      times: hours,
      stepMs: HOUR_MS,
      series: [
        { name: "Received", as: "bars", values: hours.map((t) => hour(t)?.received ?? 0) },
        { name: "Processed", as: "line", values: hours.map((t) => hour(t)?.processed ?? 0) },
        { name: "Ignored", as: "line", values: hours.map((t) => hour(t)?.ignored ?? 0) },
      ],
    },
    {
      title: "From received to processed, by hour",
      unit: "seconds",
      times: hours,
      stepMs: HOUR_MS,
      series: [
        { name: "Half within, in s", as: "line", values: hours.map((t) => hour(t)?.p50 ?? null) },
        { name: "95 % within, in s", as: "line", values: hours.map((t) => hour(t)?.p95 ?? null) },
      ],
    },
  ];
}

/** The last steps that have begun by then, or ended there; the oldest first. */
function timesUntil(until: Date, stepMs: number, steps: number): readonly Date[] {
  const end = Math.ceil(until.getTime() / stepMs) * stepMs;
  return Array.from({ length: steps }, (_, nth) => new Date(end - (steps - nth) * stepMs));
}

const isSame = (a: Date, b: Date): boolean => a.getTime() === b.getTime();

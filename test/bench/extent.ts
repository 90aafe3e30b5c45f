/** How much is measured, as the command line says it. */
import { parseArgs } from "node:util";
import { readNumber } from "../local/flags.ts";

/** Every measurement takes the flags of all, and reads its own. */
export interface Extent {
  readonly delayMs: number;
  readonly repeats: number;
  readonly events: number;
  readonly deliveries: number;
  readonly rows: number;
  /** Of a database that was filled before; without it, a new one is. */
  readonly databaseUrl: string | undefined;
  /** Whether all plans are printed, not only the slow ones. */
  readonly plans: boolean;
}

const FLAGS = {
  delay: { min: 1, max: 1_000, byDefault: 20 },
  repeats: { min: 1, max: 1_000, byDefault: 7 },
  events: { min: 1, max: 1_000_000, byDefault: 20_000 },
  deliveries: { min: 1, max: 100_000, byDefault: 200 },
  rows: { min: 1_000, max: 20_000_000, byDefault: 10_000_000 },
} as const;

/** @throws UsageError */
export function readExtent(): Extent {
  const text = { type: "string" } as const;
  const options = {
    delay: text,
    repeats: text,
    events: text,
    deliveries: text,
    rows: text,
    database: text,
    plans: { type: "boolean" },
  } as const;
  const { values } = parseArgs({ options });
  const number = (name: keyof typeof FLAGS): number =>
    readNumber({ name, ...FLAGS[name] }, values[name]) ?? FLAGS[name].byDefault;
  return {
    delayMs: number("delay"),
    repeats: number("repeats"),
    events: number("events"),
    deliveries: number("deliveries"),
    rows: number("rows"),
    databaseUrl: values.database,
    plans: values.plans ?? false,
  };
}

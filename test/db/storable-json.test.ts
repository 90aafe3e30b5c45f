/**
 * For any JSON, however nasty its texts, keys and numbers: Postgres takes what toStorableJson makes of
 * it, gives the same value back, and holds every number that can be read to its last digit.
 */
import * as fc from "fast-check";
import { Client } from "pg";
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { nestingDepth, toStorableJson } from "../../src/db/storable-json.ts";
import { json, number, space } from "./nasty-json.ts";

const postgres = new Client({ connectionString: inject("postgresUrl") });
beforeAll(() => postgres.connect());
afterAll(() => postgres.end());

async function select(expression: string, ...values: string[]): Promise<string> {
  const { rows } = await postgres.query<[string]>({
    text: `select (${expression})::text`,
    values,
    rowMode: "array",
  });
  return String(rows[0]?.[0]);
}

const throughPostgres = (sent: string): Promise<string> => select("$1::text::jsonb", sent);

/** Equal texts for equal values: keys in order; numbers as JavaScript has them, 0 without a sign. */
function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join()}]`;
  if (typeof value !== "object" || value === null) {
    return typeof value === "number" ? String(value) : JSON.stringify(value);
  }
  const entries = Object.entries(value).map(([key, v]) => `${JSON.stringify(key)}:${canonical(v)}`);
  return `{${entries.toSorted().join()}}`;
}

describe("any JSON", () => {
  test("is taken by Postgres, and comes back as the value that a handler is given", async () => {
    await fc.assert(
      fc.asyncProperty(json, async (sent) => {
        const storable = toStorableJson(sent, JSON.parse(sent));
        const stored = await throughPostgres(storable.json);
        expect(canonical(JSON.parse(stored))).toBe(canonical(storable.value));
      }),
      { numRuns: 1_500 },
    );
  });

  test("is said to be altered exactly when its value is another", () => {
    fc.assert(
      fc.property(json, (sent) => {
        const { value, altered } = toStorableJson(sent, JSON.parse(sent));
        expect(altered).toBe(canonical(value) !== canonical(JSON.parse(sent)));
      }),
      { numRuns: 1_500 },
    );
  });

  test("is not altered any further when it is read from the row again", async () => {
    await fc.assert(
      fc.asyncProperty(json, async (sent) => {
        const stored = await throughPostgres(toStorableJson(sent, JSON.parse(sent)).json);
        const again = toStorableJson(stored, JSON.parse(stored));
        expect(again.altered).toBe(false);
        expect(await throughPostgres(again.json)).toBe(stored);
      }),
      { numRuns: 500 },
    );
  });

  test("that holds nothing to replace stays byte for byte what it was", () => {
    const harmless = fc.json().filter((sent) => !/\\|[eE]/.test(sent));
    fc.assert(
      fc.property(harmless, space, (sent, blank) => {
        const event = `${blank}{"a":${blank}${sent}}${blank}`;
        const value: unknown = JSON.parse(event);
        expect(toStorableJson(event, value)).toEqual({ json: event, value, altered: false });
      }),
      { numRuns: 1_000 },
    );
  });
});

/** A nothing with an exponent (`0e500`) may be either. */
const isPlainWhenZero = (source: string): boolean => /^[^eE]*[1-9]|^[^eE]*$/.test(source);

/** How many digits Postgres writes; null when it cannot hold the number at all. */
async function plainDigits(source: string): Promise<number | null> {
  try {
    return (await select("$1::numeric", source)).replaceAll(/\D/g, "").length;
  } catch {
    return null;
  }
}

describe("any number", () => {
  test.each([
    {
      what: "a negative exponent that shortens nothing",
      source: `${"7".repeat(390)}e-20`,
      stays: true,
    },
    {
      what: "a negative exponent that lengthens",
      source: `0.${"7".repeat(390)}e-20`,
      stays: false,
    },
    { what: "the same below zero", source: `-0.${"7".repeat(390)}e-20`, stays: false },
    { what: "a leading zero that is not written", source: "0.5e400", stays: true },
    { what: "one digit more", source: "0.5e401", stays: false },
  ])("$what: kept as a number, $stays", ({ source, stays }) => {
    const sent = `[${source}]`;
    expect(toStorableJson(sent, JSON.parse(sent)).altered).toBe(!stays);
  });

  test("of up to 400 plain digits keeps them all; a longer one becomes its text", async () => {
    await fc.assert(
      fc.asyncProperty(number.filter(isPlainWhenZero), async (source) => {
        const sent = `{"n":${source}}`;
        const storable = toStorableJson(sent, JSON.parse(sent));
        const length = await plainDigits(source);
        const stays = length !== null && length <= 400;
        expect(storable.altered).toBe(!stays);
        const stored = await select("$1::text::jsonb->>'n'", storable.json);
        expect(stored).toBe(stays ? await select("$1::numeric", source) : source);
      }),
      { numRuns: 1_500 },
    );
  });
});

describe("the nesting of any JSON", () => {
  const depth = (value: unknown): number =>
    typeof value === "object" && value !== null
      ? 1 + Math.max(0, ...Object.values(value).map(depth))
      : 0;

  const deep = fc.json({ maxDepth: 6 }).filter((sent) => !sent.includes("\\\\"));

  test("is counted as its parsed form has it", () => {
    fc.assert(
      fc.property(deep, (sent) => {
        expect(nestingDepth(sent)).toBe(depth(JSON.parse(sent)));
      }),
      { numRuns: 1_000 },
    );
  });
});

/** The parts of what an operator asks for, and how what is wrong with it is said. */
import * as v from "valibot";
import type { Unread } from "./body.ts";

/** What was asked for cannot be done; the message says why. */
export class BadRequest extends Error {
  override readonly name = "BadRequest";
  readonly status: 400 | 408 | 413;

  /** @param unread why there is no body, where that is so. */
  constructor(problem: string, unread?: Unread) {
    super(problem);
    this.status = unread === "too_large" ? 413 : unread === "too_slow" ? 408 : 400;
  }
}

/** As Stripe may send a type or an id, to the letter: characters are counted as Postgres does. */
export const Text = v.pipe(
  v.string(),
  v.regex(/^[^\0\p{Cs}]{1,255}$/u),
  v.description("must be a text of 1 to 255 characters"),
);
export const Time = v.pipe(
  v.string(),
  v.trim(),
  v.regex(/^[12]\d{3}-\d{2}-\d{2}(T\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?Z)?$/),
  v.check(isDay),
  v.transform((text) => new Date(text)),
  v.check((time) => !Number.isNaN(time.getTime())),
  v.description("must be a day or a time in UTC, such as 2026-11-29 or 2026-11-29T08:30:00Z"),
);
/** Of the 31st of February, JavaScript would make the 3rd of March. */
export function isDay(text: string): boolean {
  const day = new Date(`${text.slice(0, 10)}T00:00:00Z`);
  return !Number.isNaN(day.getTime()) && day.toISOString().startsWith(text.slice(0, 10));
}

export const wholeNumber = (min: number, max: number) =>
  v.pipe(
    v.union([v.string(), v.number()]),
    v.transform(String),
    v.regex(/^\d{1,16}$/),
    v.transform(Number),
    v.minValue(min),
    v.maxValue(max),
    v.description(`must be a whole number from ${min} to ${max}`),
  );
/** An endpoint's name, a space and an id. */
export const Tie = v.pipe(v.string(), v.maxLength(600), v.regex(/^[^\p{Cc}\p{Cs}]*$/u));
export const Id = wholeNumber(1, Number.MAX_SAFE_INTEGER);
/** Browsers send the end of a line as two characters, and count it as one. */
export const Why = v.pipe(
  v.string(),
  v.transform((text) => text.replaceAll("\r\n", "\n")),
  v.trim(),
  v.minLength(1),
  v.maxLength(500),
  v.regex(/^(?:[^\p{Cs}\p{Cc}]|[\n\t])*$/u),
  v.description("must say why, in 1 to 500 characters: it goes on record"),
);

/** What a page gives as the `next` one. */
export const Cursor = v.pipe(
  v.string(),
  v.maxLength(2_000),
  v.regex(/^[\w-]+$/),
  v.description("must be the next of an earlier page"),
);
export const Paged = {
  order: v.optional(
    v.pipe(v.picklist(["newest", "oldest"]), v.description("must be newest or oldest")),
    "newest",
  ),
  limit: v.optional(wholeNumber(1, 200), "50"),
  after: v.optional(Cursor),
};

/** @throws BadRequest naming the first thing that is wrong. */
export function parse<S extends v.GenericSchema>(schema: S, from: unknown): v.InferOutput<S> {
  const parsed = v.safeParse(schema, from);
  if (parsed.success) return parsed.output;
  const [issue] = parsed.issues;
  const key = v.getDotPath(issue);
  if (key === null) throw new BadRequest("The body must be a JSON object.");
  throw new BadRequest(`${key.slice(0, 100)}: ${expectationOf(schema, key)}`);
}

function expectationOf(schema: v.GenericSchema, key: string): string {
  const entries: unknown = "entries" in schema ? schema.entries : undefined;
  if (typeof entries !== "object" || entries === null || !Object.hasOwn(entries, key)) {
    return "is not known here";
  }
  const entry: unknown = Reflect.get(entries, key);
  return descriptionOf(entry) ?? "is missing, or is not usable";
}

function descriptionOf(schema: unknown): string | undefined {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- An entry of an object schema is a schema.
  const entry = schema as v.GenericSchema & { wrapped?: v.GenericSchema };
  return v.getDescription(entry.wrapped ?? entry);
}

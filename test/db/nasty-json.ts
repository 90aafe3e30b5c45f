/** Generators of JSON text whose strings, keys, numbers and spaces are as nasty as JSON allows. */
import * as fc from "fast-check";

/** Pieces of JSON texts, as they stand between the quotes. */
const piece = fc.oneof(
  fc.constantFrom(
    "\\u0000",
    "\\ud83d",
    "\\uDE00",
    "\\ud83d\\ude00",
    "\\\\u0000",
    "\\\\",
    "\\\\\\u0000",
  ),
  fc.constantFrom(
    "\\uDBFF",
    "\\ufffd",
    "\uFFFD",
    "😀",
    "é",
    "\\n",
    '\\"',
    "\\/",
    "\u2028",
    "\\uffff",
  ),
  fc.constantFrom("__proto__", "toString", "id", "1e999", ":1e5", "[-1E9", "0", "7".repeat(401)),
  fc
    .string({ unit: "grapheme-ascii", maxLength: 4 })
    .map((text) => JSON.stringify(text).slice(1, -1)),
);
const text = fc.array(piece, { maxLength: 4 }).map((pieces) => `"${pieces.join("")}"`);

/**
 * None holds a backslash: V8 13.6, which Node 24 has and workerd has not, takes the key `"\n"` for the
 * key `"\\"` once it has seen that one.
 */
const key = text.filter((quoted) => !quoted.includes("\\\\"));

const digits = (maxLength: number): fc.Arbitrary<string> =>
  fc.string({ unit: fc.constantFrom(..."0123456789".split("")), minLength: 1, maxLength });
const whole = fc.oneof(
  fc.constant("0"),
  digits(20).map((rest) => `7${rest}`),
  fc.integer({ min: 397, max: 402 }).map((length) => "7".repeat(length)),
);
const exponent = fc.oneof(
  fc.integer({ min: -420, max: 420 }).map(String),
  fc.constantFrom("+3", "-0", "0007", "+131071", "-16383", "200000", "-200000"),
  digits(30).map((rest) => `9${rest}`),
);
/** Numbers whose plain form is what a reader may expect, or far from it. */
export const number = fc
  .tuple(
    fc.constantFrom("", "-"),
    whole,
    fc.option(fc.oneof(digits(12), fc.constantFrom("0", "0".repeat(399), "3".repeat(399)))),
    fc.option(fc.tuple(fc.constantFrom("e", "E"), exponent)),
  )
  .map(
    ([sign, integer, fraction, power]) =>
      `${sign}${integer}${fraction === null ? "" : `.${fraction}`}${power?.join("") ?? ""}`,
  );

export const space = fc.constantFrom("", "", " ", "\n\t");
/** JSON text of any shape; keys may stand twice in one object. */
export const json = fc.letrec<{ value: string; list: string; object: string }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 4, withCrossShrink: true },
    fc.oneof(text, number, fc.constantFrom("true", "false", "null")),
    tie("list"),
    tie("object"),
  ),
  list: fc
    .array(fc.tuple(space, tie("value"), space), { maxLength: 4 })
    .map((items) => `[${items.map((item) => item.join("")).join()}]`),
  object: fc
    .array(fc.tuple(key, space, tie("value"), space), { maxLength: 4 })
    .map((members) => `{${members.map(([k, s, v, t]) => `${t}${k}${s}:${s}${v}${t}`).join()}}`),
})).object;

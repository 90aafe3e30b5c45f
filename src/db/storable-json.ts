/**
 * JSON text that a Postgres jsonb can hold and give back, number for number.
 *
 * jsonb refuses U+0000 and lone surrogates, and can hold numbers so long that the row can no
 * longer be read. Those, and only those, are replaced: in values and keys of the parsed text,
 * never by a pattern over the text itself, where `\\u0000` may be six innocent characters.
 */

/** Digits of a number's plain form beyond which its text is stored instead. */
const LONGEST_NUMBER_DIGITS = 400;
/**
 * How much longer all numbers together may become in their plain form: hundreds of thousands of
 * short `1e399` would be read back as hundreds of megabytes.
 */
const GREATEST_EXPANSION_DIGITS = 1_000_000;

/** Text without a match needs no second look; a match only means "look". */
const SUSPICIOUS = /\\u(?:0000|[dD][89a-fA-F])|[:,[\s]-?\d+(?:\.\d+)?[eE]|(?<![\d.])[\d.]{401}/;

export interface StorableJson {
  readonly json: string;
  /** The value of `json`: what a handler gets is what is stored. */
  readonly value: unknown;
  /** True when something had to be replaced. */
  readonly altered: boolean;
}

/**
 * @param json text of an object or array of moderate nesting.
 * @param value that text, parsed.
 */
export function toStorableJson(json: string, value: unknown): StorableJson {
  if (!SUSPICIOUS.test(json)) return { json, value, altered: false };

  let altered = false;
  let expansion = 0;
  const storable = parseWithSource(json, (part, source) => {
    if (typeof part === "number" && source !== undefined) {
      const digits = plainDigits(source);
      const growth = Math.max(digits - source.length, 0);
      const tooMuch = growth > 0 && expansion + growth > GREATEST_EXPANSION_DIGITS;
      if (digits <= LONGEST_NUMBER_DIGITS && !tooMuch) {
        expansion += growth;
        // A raw number costs an object; most numbers are written back as they were read anyway.
        return String(part) === source ? part : rawJson(source);
      }
      altered = true;
      return source;
    }
    if (typeof part === "string") {
      const text = storableText(part);
      altered ||= text !== part;
      return text;
    }
    if (typeof part === "object" && part !== null && !Array.isArray(part)) {
      const keys = Object.keys(part);
      if (keys.every((key) => storableText(key) === key)) return part;
      altered = true;
      return Object.fromEntries(Object.entries(part).map(([key, v]) => [storableText(key), v]));
    }
    return part;
  });
  const text = JSON.stringify(storable);
  return { json: text, value: JSON.parse(text), altered };
}

/** Whether a Postgres text can hold it as it is. */
export function isStorableText(text: string): boolean {
  return storableText(text) === text;
}

/** The deepest nesting of objects and arrays in JSON text; the outermost counts 1. */
export function nestingDepth(json: string): number {
  let depth = 0;
  let deepest = 0;
  let inString = false;
  for (let i = 0; i < json.length; i++) {
    const character = json[i];
    if (inString) {
      if (character === "\\") i++;
      else if (character === '"') inString = false;
    } else if (character === '"') inString = true;
    else if (character === "{" || character === "[") deepest = Math.max(deepest, ++depth);
    else if (character === "}" || character === "]") depth--;
  }
  return deepest;
}

function storableText(text: string): string {
  return text.toWellFormed().replaceAll("\u0000", "\uFFFD");
}

/**
 * How many digits a JSON number has when written without exponent, as Postgres prints it. Zeros
 * with an exponent count like any digit: Postgres refuses the larger of those, too.
 */
function plainDigits(source: string): number {
  const [mantissa = "", exponent = "0"] = source.toLowerCase().replace(/^-/, "").split("e");
  const [whole = "", fraction = ""] = mantissa.split(".");
  const shift = Number(exponent);
  const digits = whole + fraction;
  const leadingZeros = /[1-9]/.test(digits) ? digits.search(/[1-9]/) : 0;
  return Math.max(whole.length + shift - leadingZeros, 1) + Math.max(fraction.length - shift, 0);
}

/** JSON parsed so that JSON.stringify gives each number back with every digit. */
export function parseKeepingDigits(json: string): unknown {
  return parseWithSource(json, (part, source) =>
    typeof part === "number" && source !== undefined && String(part) !== source
      ? rawJson(source)
      : part,
  );
}

type Reviver = (value: unknown, source: string | undefined) => unknown;

/** JSON.parse with each primitive's source text (ES2026; TypeScript's library lacks the types). */
function parseWithSource(json: string, revive: Reviver): unknown {
  return JSON.parse(json, (_key: string, value: unknown, context?: { source?: string }) =>
    revive(value, context?.source),
  );
}

/** A number that JSON.stringify writes exactly as it was read. */
function rawJson(source: string): unknown {
  const json: typeof JSON & { rawJSON?: (text: string) => unknown } = JSON;
  if (!json.rawJSON) throw new Error("Bug! This runtime has no JSON.rawJSON.");
  return json.rawJSON(source);
}

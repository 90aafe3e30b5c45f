/** An operator's JSON: snake_case, as all JSON here, from the camelCase of the code. */

/** Left as they are: their keys are data. */
const AS_STORED = new Set(["detail", "calls"]);

export function toJson(value: unknown): string {
  return JSON.stringify(snakeCased(value));
}

/** With a JSON text in it that is passed on to the letter. */
export function toJsonWith(value: object, key: string, json: string | null): string {
  return `${toJson(value).slice(0, -1)},${JSON.stringify(key)}:${json ?? "null"}}`;
}

function snakeCased(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(snakeCased);
  if (typeof value !== "object" || value === null || value instanceof Date) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, part]) => [
      key.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
      AS_STORED.has(key) ? part : snakeCased(part),
    ]),
  );
}

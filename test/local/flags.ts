/** Numbers on the command line, and errors that the one who typed them can mend. */

/** Its message is all that needs to be said. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}

export interface NumberFlag {
  readonly name: string;
  readonly min: number;
  readonly max: number;
}

/** The whole number that a flag was given; undefined when it was not given. */
export function readNumber(
  { name, min, max }: NumberFlag,
  text: string | undefined,
): number | undefined {
  if (text === undefined) return undefined;
  const number = Number(text);
  if (!/^\d+$/.test(text) || number < min || number > max) {
    throw new UsageError(`--${name} must be a whole number from ${min} to ${max}, not "${text}"`);
  }
  return number;
}

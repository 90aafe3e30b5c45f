/**
 * Every way in which something can go that has choices to make, each once, depth first. It is
 * played from its beginning for each way, and so must come, after the same choices, to the same
 * next one. Pure: knows nothing of what is chosen between.
 */

/** Picks one of the options, of which there is at least one. */
export type Choose = (options: readonly string[]) => string;

/** After the same choices, something else was to be chosen than before. */
export class NotRepeatable extends Error {
  override readonly name = "NotRepeatable";
}

export interface Enumerated {
  /** How often it was played, each time in another way. */
  readonly ways: number;
  /** False: there are more ways than were allowed. */
  readonly complete: boolean;
}

interface Choice {
  readonly options: readonly string[];
  taken: number;
}

export async function everyWay(
  play: (choose: Choose) => Promise<void>,
  most: number,
): Promise<Enumerated> {
  const path: Choice[] = [];
  for (let ways = 1; ; ways++) {
    let depth = 0;
    await play((options) => {
      const known = path[depth];
      const choice = known ?? { options, taken: 0 };
      if (!known) path.push(choice);
      else if (known.options.join() !== options.join()) {
        throw new NotRepeatable(
          `choice ${depth + 1}: ${options.join()}, not ${known.options.join()}`,
        );
      }
      depth += 1;
      return optionOf(choice);
    });
    if (depth < path.length) {
      throw new NotRepeatable(`it ended after ${depth} choices, not ${path.length}`);
    }
    while (path.length > 0 && isSpent(path.at(-1))) path.pop();
    const last = path.at(-1);
    if (!last) return { ways, complete: true };
    if (ways === most) return { ways, complete: false };
    last.taken += 1;
  }
}

/** Whoever is preferred goes on for as long as it can. */
export function preferring(who: string): Choose {
  return (options) => optionOf({ options, taken: Math.max(0, options.indexOf(who)) });
}

function optionOf({ options, taken }: Choice): string {
  const option = options[taken];
  if (option === undefined) throw new Error("Bug! There is nothing to choose from.");
  return option;
}

function isSpent(choice: Choice | undefined): boolean {
  return choice !== undefined && choice.taken === choice.options.length - 1;
}

/**
 * One part of the proof in a process of its own, started by `runPart`: parts that run beside each
 * other share nothing, and each finds its own workerd among its children.
 */
import { fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import { interruption } from "../local/interruption.ts";
import { PARTS, type PartOptions } from "./parts.ts";
import type { Section } from "./report.ts";

/** What the process says to the one that started it. */
type Word =
  | { readonly say: string }
  /** Null: it needs what this machine has not. */
  | { readonly section: Section | null };

type Given = Omit<PartOptions, "say" | "signal">;

const FILE = fileURLToPath(import.meta.url);

/** @throws when it does not come to its end; why was written to standard error. */
export async function runPart(
  name: string,
  { signal, say, ...given }: PartOptions,
): Promise<Section | null> {
  const child = fork(FILE, [name, JSON.stringify(given)]);
  const end = (): void => void child.kill("SIGTERM");
  signal.addEventListener("abort", end);
  const { promise, resolve, reject } = Promise.withResolvers<Section | null>();
  child.on("message", (word: Word) => {
    if ("say" in word) say(word.say);
    else resolve(word.section);
  });
  child.on("exit", () => reject(new Error(`${name} did not come to its end.`)));
  child.on("error", reject);
  try {
    return await promise;
  } finally {
    signal.removeEventListener("abort", end);
  }
}

async function main(name: string, given: Given): Promise<void> {
  const part = PARTS.find((candidate) => candidate.name === name);
  if (!part) throw new Error(`Bug! There is no part ${name}.`);
  const say = (line: string): void => void tell({ say: line });
  const signal = AbortSignal.any([interruption(), orphaned()]);
  const section = await part.run({ ...given, say, signal });
  await tell({ section });
  process.disconnect();
}

/** Aborted when nobody waits for the part any more, however that one ended. */
function orphaned(): AbortSignal {
  const controller = new AbortController();
  process.on("disconnect", () => controller.abort());
  return controller.signal;
}

function tell(word: Word): Promise<void> {
  return new Promise((resolve) => {
    process.send?.(word, () => resolve());
  });
}

if (process.argv[1] === FILE) {
  const [name = "", given = "{}"] = process.argv.slice(2);
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- Written by `runPart` above.
  await main(name, JSON.parse(given) as Given);
}

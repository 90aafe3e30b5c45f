/**
 * Hostile input: whatever is sent, it has one defined answer within the promised time, nothing that
 * is not verified leaves a row, everything that is leaves exactly its own, and the Worker lives on.
 */
import * as fc from "fast-check";
import { corpus, forTheControl, type InputClass } from "./corpus.ts";
import { type Generator, generators } from "./generator.ts";
import { hostileSection } from "./report.ts";
import { Tally } from "./tally.ts";
import { Trial } from "./trial.ts";
import type { Section } from "../report.ts";
import type { Stage } from "../stage/stage.ts";

export const HOSTILE_WORKERS = {
  receiver: { entry: "test/proof/workers/receiver.ts" },
  /** The control: it trusts what it is sent. */
  credulous: { entry: "test/proof/workers/credulous.ts" },
} as const;

export interface HostileOptions {
  /** One with the Workers of HOSTILE_WORKERS. */
  readonly stage: Stage;
  /** Repeats what was drawn. */
  readonly seed?: number;
  /** How many inputs are drawn, besides the corpus. */
  readonly generated: number;
  /** Only every so many'th of the larger classes, for a short proof. */
  readonly every?: number;
  readonly say?: (line: string) => void;
}

/** Of one generator, shrinking included. */
const MOST_MS = 120_000;

export async function proveHostileInput({
  stage,
  seed = Math.floor(Math.random() * 2 ** 31),
  generated,
  every = 1,
  say = () => undefined,
}: HostileOptions): Promise<Section> {
  const startBytes = (await stage.workerd.residentBytes()) ?? 0;
  const trial = await Trial.of(stage, "receiver");
  const tallies: Tally[] = [];
  const next = async (name: string, hold: (tally: Tally) => Promise<void>): Promise<void> => {
    // Nothing that comes after a crash says anything.
    if (tallies.some(({ crashes }) => crashes > 0)) return;
    const tally = new Tally(name);
    tallies.push(tally);
    await hold(tally);
    say(`${name}: ${tally.inputs} inputs, ${tally.problems.length} problems`);
  };

  for (const inputs of corpus) {
    await next(inputs.name, (tally) => trial.hold(share(inputs, every), tally));
  }
  const runs = Math.ceil(generated / generators.length);
  for (const [n, generator] of generators.entries()) {
    await next(`drawn: ${generator.name}`, (tally) =>
      draw(trial, generator, seed + n, runs, tally),
    );
  }
  const growthBytes = trial.mostBytes - startBytes;
  const control = new Tally("control");
  await (await Trial.of(stage, "credulous")).hold(forTheControl, control);
  return hostileSection({ tallies, control, seed, startBytes, growthBytes });
}

function share(inputs: InputClass, every: number): InputClass {
  if (!inputs.sampled) return inputs;
  return { ...inputs, conversations: inputs.conversations.filter((_, n) => n % every === 0) };
}

async function draw(
  trial: Trial,
  { input }: Generator,
  seed: number,
  runs: number,
  tally: Tally,
): Promise<void> {
  const property = fc.asyncProperty(input, async (drawn) => {
    const problems = await trial.try([drawn], tally);
    if (problems.length > 0) throw new Error(problems.map(({ text }) => text).join("; "));
  });
  const { failed, errorInstance, counterexamplePath } = await fc.check(property, {
    seed,
    numRuns: runs,
    interruptAfterTimeLimit: MOST_MS,
    markInterruptAsFailure: true,
  });
  if (failed) {
    const why = errorInstance instanceof Error ? errorInstance.message : "not done in time";
    const text = `${why} (seed ${seed}, path ${counterexamplePath ?? "none"})`;
    tally.problems.push({ what: "answer", text });
  }
  await trial.check(tally);
}

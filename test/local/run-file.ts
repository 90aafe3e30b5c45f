/**
 * `.local/run.json`: what runs on this machine from this folder. It lets only one run at a time,
 * tells `npm run simulate` where to post, and lets the next run end what a killed one left behind.
 */
import { chmodSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import * as v from "valibot";
import { ProcessId, endProcesses, identify, isAlive } from "./processes.ts";

export const ROOT = fileURLToPath(new URL("../..", import.meta.url)).replace(/\/$/, "");
/** Everything that a run leaves on this machine, ignored by git. */
export const LOCAL = join(ROOT, ".local");
const RUN_FILE = join(LOCAL, "run.json");

/** Where the Worker is, and what the simulated Stripe must know of it. */
const Receiver = v.object({
  url: v.string(),
  databaseUrl: v.string(),
  secrets: v.object({ billing: v.string(), connect: v.string() }),
  /** The endpoints' livemode rule; null accepts both. */
  livemode: v.nullable(v.boolean()),
  /** The fake Stripe API that the Worker calls; null when it calls another one, or none. */
  apiUrl: v.nullable(v.string()),
  /** Whether the Worker looks there for what never came. */
  sweeps: v.optional(v.boolean(), true),
});
export type Receiver = Readonly<v.InferOutput<typeof Receiver>>;

const Child = v.object({
  ...ProcessId.entries,
  name: v.string(),
  /** What the command line of every process of this child contains. */
  mark: v.string(),
});
type Child = Readonly<v.InferOutput<typeof Child>>;

const Run = v.object({
  owner: ProcessId,
  children: v.array(Child),
  receiver: v.nullable(Receiver),
});
type Run = v.InferOutput<typeof Run>;

export class AlreadyRunning extends Error {
  constructor(run: Run) {
    const where = run.receiver ? `at ${run.receiver.url}` : "and is about to serve";
    super(
      `Another run of this folder is under way ${where} (process ${run.owner.pid}).\n` +
        `End it first, or send it more traffic: npm run simulate`,
    );
  }
}

/** The receiver that a living run of this folder serves. */
export function findReceiver(): Receiver | undefined {
  const run = read();
  return run && isAlive(run.owner) ? (run.receiver ?? undefined) : undefined;
}

/**
 * Makes this process the one that runs, after ending what a killed run left behind.
 *
 * @throws AlreadyRunning
 */
export async function claimRun(say: (line: string) => void): Promise<RunFile> {
  const former = read();
  if (former && isAlive(former.owner)) throw new AlreadyRunning(former);
  for (const child of former?.children ?? []) {
    if (await endChild(child)) say(`Ended the ${child.name} that a killed run had left behind.`);
  }
  return new RunFile();
}

/** Ends a child and whatever it started; false when nothing of it was left. */
export async function endChild({ pid, mark }: Pick<Child, "pid" | "mark">): Promise<boolean> {
  // Children lead a process group of their own, and what they start stays in it.
  let found = false;
  await endProcesses(({ group, command }) => {
    const ours = group === pid && command.includes(mark);
    found ||= ours;
    return ours;
  });
  return found;
}

/** The run of this process. Written after every change, before anything else can happen. */
export class RunFile {
  #run: Run = { owner: identify(process.pid), children: [], receiver: null };

  constructor() {
    this.#write();
  }

  addChild(name: string, pid: number, mark: string): void {
    const child = { name, mark, ...identify(pid) };
    this.#run = { ...this.#run, children: [...this.#run.children, child] };
    this.#write();
  }

  serve(receiver: Receiver): void {
    this.#run = { ...this.#run, receiver };
    this.#write();
  }

  remove(): void {
    rmSync(RUN_FILE, { force: true });
  }

  #write(): void {
    mkdirSync(LOCAL, { recursive: true });
    const next = `${RUN_FILE}.${process.pid}`;
    // It holds the secrets of the endpoints, for this user's eyes.
    writeFileSync(next, JSON.stringify(this.#run, null, 2), { mode: 0o600 });
    chmodSync(next, 0o600);
    renameSync(next, RUN_FILE);
  }
}

function read(): Run | undefined {
  try {
    return v.parse(Run, JSON.parse(readFileSync(RUN_FILE, "utf8")));
  } catch {
    return undefined; // None, or cut short by a full disk: nothing that could be trusted.
  }
}

/**
 * The machine's processes: who runs, and the end of those that this project started. A process is
 * known by its id and the time it started, since ids are used again; nothing else is ever ended.
 */
import { execFileSync } from "node:child_process";
import { readFileSync, readdirSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import * as v from "valibot";

/** A process that this project remembers; `startedAt` is only to be compared. */
export const ProcessId = v.object({ pid: v.number(), startedAt: v.string() });
export type ProcessId = Readonly<v.InferOutput<typeof ProcessId>>;

export interface Process extends ProcessId {
  readonly parent: number;
  readonly group: number;
  readonly command: string;
}

const POLL_MS = 50;
const WATCH_MS = 250;
/** How long a process may take to end by itself before it is killed. */
const GRACE_MS = 8_000;
const KILL_MS = 3_000;

/** Every living process; those that ended and wait to be collected are not among them. */
export function listProcesses(): readonly Process[] {
  return process.platform === "linux" ? listFromProc() : listFromPs();
}

export function findProcess(pid: number): Process | undefined {
  return listProcesses().find((candidate) => candidate.pid === pid);
}

export function isAlive({ pid, startedAt }: ProcessId): boolean {
  return findProcess(pid)?.startedAt === startedAt;
}

/** The identity of this process, or of one that it started. */
export function identify(pid: number): ProcessId {
  return { pid, startedAt: findProcess(pid)?.startedAt ?? "" };
}

/**
 * Calls back when the npm that runs this process has ended, or the shell between them: a signal to
 * npm alone ends those two and never arrives here. Does nothing when this was not started by npm.
 */
export function onNpmEnd(callback: () => void): void {
  if (process.env["npm_lifecycle_event"] === undefined) return;
  const all = new Map(listProcesses().map((candidate) => [candidate.pid, candidate]));
  const parent = all.get(process.ppid);
  const above = parent && all.get(parent.parent);
  const watched = [parent, above].filter((ancestor) => ancestor?.command.startsWith("npm"));
  const pids = [process.ppid, ...watched.flatMap((ancestor) => ancestor?.pid ?? [])];
  const timer = setInterval(() => {
    if (pids.every(exists) && process.ppid === pids[0]) return;
    clearInterval(timer);
    callback();
  }, WATCH_MS);
  timer.unref();
}

function exists(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return error instanceof Error && "code" in error && error.code === "EPERM";
  }
}

/**
 * Asks the chosen processes to end, and kills what is left after a while. The choice is made anew
 * at every look, so that what they start meanwhile ends too.
 */
export async function endProcesses(
  choose: (candidate: Process) => boolean,
  signal: NodeJS.Signals = "SIGTERM",
): Promise<void> {
  const chosen = () => listProcesses().filter(choose);
  send(chosen(), signal);
  const grace = Date.now() + GRACE_MS;
  while (Date.now() < grace) {
    if (chosen().length === 0) return;
    await pause(POLL_MS);
  }
  const deadline = Date.now() + KILL_MS;
  while (chosen().length > 0) {
    if (Date.now() > deadline) {
      const left = chosen().map(({ pid, command }) => `${pid} (${command.slice(0, 80)})`);
      throw new Error(`These processes do not end: ${left.join(", ")}`);
    }
    send(chosen(), "SIGKILL");
    await pause(POLL_MS);
  }
}

function send(processes: readonly Process[], signal: NodeJS.Signals): void {
  for (const { pid } of processes) {
    try {
      process.kill(pid, signal);
    } catch {
      // It ended in the meantime.
    }
  }
}

function listFromProc(): readonly Process[] {
  const boot = readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => {
      try {
        const stat = readFileSync(`/proc/${name}/stat`, "utf8");
        // The second field is the program's name in brackets, and may hold blanks and brackets.
        const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
        const [state, parent, group] = fields;
        if (state === "Z" || state === "X") return [];
        const command = readFileSync(`/proc/${name}/cmdline`, "utf8").replaceAll("\0", " ").trim();
        const startedAt = `${boot} ${fields[19] ?? ""}`;
        const numbers = { pid: Number(name), parent: Number(parent), group: Number(group) };
        return [{ ...numbers, startedAt, command }];
      } catch {
        return []; // It ended while we looked.
      }
    });
}

function listFromPs(): readonly Process[] {
  const columns = ["pid=", "ppid=", "pgid=", "stat=", "lstart=", "command="];
  const text = execFileSync("ps", ["-A", "-ww", ...columns.flatMap((column) => ["-o", column])], {
    encoding: "utf8",
    env: { ...process.env, LC_ALL: "C" },
    maxBuffer: 64 * 1024 * 1024,
  });
  return text.split("\n").flatMap((line) => {
    const parts = /^\s*(\d+)\s+(\d+)\s+(\d+)\s+(\S+)\s+(\w+ +\w+ +\d+ [\d:]+ \d+)\s+(.*)$/.exec(
      line,
    );
    if (!parts) return [];
    const [, pid, parent, group, state = "", startedAt = "", command = ""] = parts;
    if (state.startsWith("Z")) return [];
    const numbers = { pid: Number(pid), parent: Number(parent), group: Number(group) };
    return [{ ...numbers, startedAt, command }];
  });
}

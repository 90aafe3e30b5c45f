/**
 * CPU time of a process, its threads and the kernel's work for it included. Linux only.
 * Not told: what a Worker is billed for, which leaves out the kernel's part.
 */
import { readFileSync } from "node:fs";

/** Linux counts in hundredths of a second for whoever asks, whatever its own clock does. */
const TICK_MS = 10;

/** @returns null where nobody counts. */
export function cpuMs(pid: number): number | null {
  if (process.platform !== "linux") return null;
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  // The second field is the program's name in brackets, and may hold blanks and brackets.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[11]) + Number(fields[12])) * TICK_MS;
}

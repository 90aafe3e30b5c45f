/** A command of an operator, as it is typed. */
import { execFile } from "node:child_process";
import { join } from "node:path";
import { ROOT } from "../local/run-file.ts";
import type { Testbed } from "../worker/testbed.ts";

export interface Ran {
  readonly status: number;
  /** What it said, to whichever stream. */
  readonly text: string;
}

/**
 * @param program its file in `src/cli`.
 * @param inbox whose database it works on; null: none is named.
 */
export function runCli(
  program: string,
  inbox: Pick<Testbed, "databaseUrl"> | null,
  ...flags: string[]
): Promise<Ran> {
  return runCliWith({ DATABASE_URL: inbox?.databaseUrl ?? "" }, program, ...flags);
}

export function runCliWith(
  env: Readonly<Record<string, string>>,
  program: string,
  ...flags: string[]
): Promise<Ran> {
  const file = join(ROOT, "src", "cli", `${program}.ts`);
  return new Promise((resolve) => {
    const options = { env: { ...process.env, ...env } };
    execFile(process.execPath, [file, ...flags], options, (error, stdout, stderr) => {
      resolve({ status: error ? Number(error.code) : 0, text: stdout + stderr });
    });
  });
}

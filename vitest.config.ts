import { builtinModules } from "node:module";
import { cloudflareTest } from "@cloudflare/vitest-plugin";
import { defineConfig } from "vitest/config";

/** What workerd reports for a socket that was closed while a read was waiting on it. */
const CLOSED_SOCKET = "This socket has been closed.";

/** Whatever a driver can get wrong, once more on the other road; the rest is the same on both. */
const ON_BOTH_ROADS = [
  "async",
  "booking",
  "connections",
  "database",
  "deadline",
  "failures",
  "invoice-locks",
  "jsonb",
  "once",
  "ops-figures",
  "ops-requeue",
  "ops-resolve-all",
  "pipeline",
  "pooler",
  "prepared",
  "privacy",
  "races",
  "receive",
  "retention",
  "review",
  "slow-handlers",
  "tick",
  "unsettled",
].map((name) => `test/worker/${name}.test.ts`);

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

function inWorkerd(name: string, road: "hyperdrive" | "neon", include: string[]) {
  return {
    extends: true as const,
    plugins: [cloudflareTest({ wrangler: { configPath: "./wrangler.toml" } })],
    test: { name, include, provide: { road }, deps: BUNDLED },
  };
}

export default defineConfig({
  test: {
    globalSetup: ["test/local/vitest-setup.ts"],
    testTimeout: 60_000,
    hookTimeout: 60_000,
    silent: "passed-only",
    onUnhandledError: (error) => error.message !== CLOSED_SOCKET,
    projects: [
      inWorkerd("worker", "hyperdrive", ["test/worker/**/*.test.ts"]),
      inWorkerd("worker over WebSockets", "neon", ON_BOTH_ROADS),
      {
        extends: true,
        test: {
          name: "node",
          include: ["test/{db,local,proof,browser}/**/*.test.ts"],
          provide: { road: "hyperdrive" },
        },
      },
    ],
  },
});

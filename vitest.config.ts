import { builtinModules } from "node:module";
import { cloudflareTest } from "@cloudflare/vitest-plugin";
import { defineConfig } from "vitest/config";

/** What workerd reports for a socket that was closed while a read was waiting on it. */
const CLOSED_SOCKET = "This socket has been closed.";

export default defineConfig({
  test: {
    globalSetup: ["test/local/vitest-setup.ts"],
    testTimeout: 60_000,
    hookTimeout: 60_000,
    silent: "passed-only",
    onUnhandledError: (error) => error.message !== CLOSED_SOCKET,
    projects: [
      {
        extends: true,
        plugins: [cloudflareTest({ wrangler: { configPath: "./wrangler.toml" } })],
        test: {
          name: "worker",
          include: ["test/worker/**/*.test.ts"],
          // Bundled, as wrangler does it: otherwise `pg` gets the Node build of its socket.
          deps: {
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
          },
        },
      },
      {
        extends: true,
        test: { name: "node", include: ["test/{db,local,proof,browser}/**/*.test.ts"] },
      },
    ],
  },
});

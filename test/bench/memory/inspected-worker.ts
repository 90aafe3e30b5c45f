/**
 * The real Worker in workerd, bundled as for a deploy, with V8's inspector at its isolate: what its
 * heap holds, as V8 counts it, at any time.
 */
import { join } from "node:path";
import { convertV4MiniflareOptions, Miniflare, NoOpLog } from "miniflare";
import { unstable_readConfig as readConfig } from "wrangler";
import { ROOT } from "../../local/run-file.ts";
import { bundle } from "../../proof/stage/workerd.ts";
import { type Inspector, inspect } from "./inspector.ts";

const NAME = "inspected";

export interface InspectedWorker {
  readonly heap: Inspector["heap"];
  readonly collectGarbage: () => Promise<void>;
  readonly tick: () => Promise<void>;
  /** @returns the status. */
  readonly deliver: (body: string, signature: string) => Promise<number>;
}

export async function withInspectedWorker<T>(
  databaseUrl: string,
  vars: Readonly<Record<string, string>>,
  use: (worker: InspectedWorker) => Promise<T>,
): Promise<T> {
  const { compatibility_date, compatibility_flags } = readConfig(
    { config: join(ROOT, "wrangler.toml") },
    { hideWarnings: true },
  );
  const contents = await bundle("src/index.ts");
  const options = convertV4MiniflareOptions({
    log: new NoOpLog(),
    inspectorPort: 0,
    name: NAME,
    modules: [{ type: "ESModule", path: "index.js", contents }],
    ...(compatibility_date ? { compatibilityDate: compatibility_date } : {}),
    compatibilityFlags: compatibility_flags,
    bindings: { ...vars },
    hyperdrives: { HYPERDRIVE: databaseUrl },
  });
  const miniflare = new Miniflare({ ...options, handleStructuredLogs: () => undefined });
  try {
    await miniflare.ready;
    const inspector = await inspect(
      new URL(`/core:user:${NAME}`, await miniflare.getInspectorURL()),
    );
    const worker = await miniflare.getWorker(NAME);
    return await use({
      heap: inspector.heap,
      collectGarbage: async () => {
        const collected = inspector.collectGarbage().then(() => true);
        while (!(await Promise.race([collected, wake(miniflare)]))) {
          // Until it has come to that.
        }
      },
      tick: async () => {
        const { outcome } = await worker.scheduled({ cron: "* * * * *" });
        if (outcome !== "ok") throw new Error(`The tick ended as ${outcome}.`);
      },
      deliver: async (body, signature) => {
        const url = "http://inbox.test/webhooks/stripe/billing";
        const headers = { "stripe-signature": signature };
        const response = await miniflare.dispatchFetch(url, { method: "POST", headers, body });
        await response.text();
        return response.status;
      },
    });
  } finally {
    await miniflare.dispose();
  }
}

/** A request that nothing is done for. */
async function wake(miniflare: Miniflare): Promise<false> {
  const response = await miniflare.dispatchFetch("http://inbox.test/webhooks/stripe/billing");
  await response.text();
  return false;
}

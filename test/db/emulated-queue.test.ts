/**
 * The way out as a whole: the bundled Worker in workerd, the queues of `wrangler.toml` as wrangler
 * emulates them, and the fake Stripe API at the end.
 */
import { join } from "node:path";
import { convertV4MiniflareOptions, Miniflare, NoOpLog } from "miniflare";
import * as v from "valibot";
import { beforeAll, expect, onTestFinished, test, vi } from "vitest";
import { unstable_readConfig as readConfig } from "wrangler";
import { ROOT } from "../local/run-file.ts";
import { signatureHeader } from "../local/sign.ts";
import { type ApiOptions, type FakeStripeApi, startStripeApi } from "../local/stripe-api.ts";
import { bundle } from "../proof/stage/workerd.ts";
import { anInvoiceEvent, openTestbed, SECRET, type Testbed } from "../worker/testbed.ts";
import { journalRows, outboxRows } from "./outbox.ts";

const Config = v.object({
  compatibility_date: v.string(),
  compatibility_flags: v.array(v.string()),
  queues: v.object({
    producers: v.array(v.object({ binding: v.string(), queue: v.string() })),
    consumers: v.array(
      v.object({
        queue: v.string(),
        max_batch_size: v.number(),
        max_batch_timeout: v.number(),
        max_retries: v.number(),
        dead_letter_queue: v.optional(v.string()),
      }),
    ),
  }),
});
const config = v.parse(
  Config,
  readConfig({ config: join(ROOT, "wrangler.toml") }, { hideWarnings: true }),
);
/** For as long as the queue takes its time. */
const PATIENCE = { timeout: 30_000, interval: 50 } as const;

let script: string;

beforeAll(async () => {
  script = await bundle("src/index.ts");
});

interface Deployed {
  readonly inbox: Testbed;
  readonly api: FakeStripeApi;
  readonly deliver: (event: { readonly id: string }) => Promise<number>;
}

/** @param maxRetries in the place of those in `wrangler.toml`, so that the end is not far. */
async function deploy(api: ApiOptions = {}, maxRetries?: number): Promise<Deployed> {
  const stripe = await startStripeApi(api);
  onTestFinished(stripe.close);
  const inbox = await openTestbed();
  const database = new URL(inbox.databaseUrl);
  database.password ||= "none";
  const consumers = config.queues.consumers.map((consumer) => [
    consumer.queue,
    {
      maxBatchSize: consumer.max_batch_size,
      maxBatchTimeout: consumer.max_batch_timeout,
      maxRetries: maxRetries ?? consumer.max_retries,
      ...(consumer.dead_letter_queue ? { deadLetterQueue: consumer.dead_letter_queue } : {}),
    },
  ]);
  const producers = config.queues.producers.map(({ binding, queue }) => [binding, queue]);
  const options = convertV4MiniflareOptions({
    log: new NoOpLog(),
    workers: [
      {
        name: "stripe-inbox",
        modules: [{ type: "ESModule", path: "index.js", contents: script }],
        compatibilityDate: config.compatibility_date,
        compatibilityFlags: config.compatibility_flags,
        hyperdrives: { HYPERDRIVE: database.href },
        queueProducers: Object.fromEntries(producers),
        queueConsumers: Object.fromEntries(consumers),
        bindings: {
          STRIPE_WEBHOOK_SECRET: SECRET,
          STRIPE_API_KEY: "sk_test_made_up",
          STRIPE_API_URL: stripe.url,
          SWEEP_INTERVAL_MINUTES: "0",
          // One delivery follows the other within a second.
          BACKOFF_CAP_SECONDS: "1",
        },
      },
    ],
  });
  const miniflare = new Miniflare({ ...options, handleStructuredLogs: () => undefined });
  onTestFinished(() => miniflare.dispose());
  await miniflare.ready;
  return {
    inbox,
    api: stripe,
    deliver: async (event) => {
      const body = JSON.stringify(event);
      const headers = { "stripe-signature": await signatureHeader(body, SECRET, {}) };
      const url = "http://inbox.test/webhooks/stripe/billing";
      const response = await miniflare.dispatchFetch(url, { method: "POST", headers, body });
      await response.text();
      return response.status;
    },
  };
}

async function allDone({ inbox }: Deployed): Promise<boolean> {
  const rows = await outboxRows(inbox);
  return rows.length > 0 && rows.every((row) => row["done"] === true);
}

test("a booked payment leaves through the queue, comes back, and is told to Stripe once", async () => {
  const deployed = await deploy();
  const { api, deliver } = deployed;
  const events = Array.from({ length: 12 }, () => anInvoiceEvent());
  for (const event of events) expect(await deliver(event)).toBe(200);
  await vi.waitUntil(() => allDone(deployed), PATIENCE);
  expect(new Set(api.effects.keys())).toEqual(
    new Set(events.map(({ id }) => `webhook:${id}:update-customer-metadata`)),
  );
  expect(api.calls).toHaveLength(events.length);
});

test("what Stripe fails is delivered again by the queue, and has its effect once", async () => {
  const deployed = await deploy({ fault: ({ n }) => (n === 1 ? "lose the answer" : null) });
  const { api, deliver } = deployed;
  await deliver(anInvoiceEvent());
  await vi.waitUntil(() => allDone(deployed), PATIENCE);
  expect(api.calls).toHaveLength(2);
  expect([...api.effects.values()]).toEqual([1]);
});

test("what the queue gives up goes through the queue of the undelivered to review", async () => {
  const { inbox, deliver } = await deploy({ fault: () => ({ status: 503 }) }, 1);
  await deliver(anInvoiceEvent());
  await vi.waitUntil(
    async () => (await journalRows(inbox)).some((row) => row["state"] === "parked"),
    PATIENCE,
  );
  expect(await journalRows(inbox)).toMatchObject([{ state: "parked", last_error: "Stripe:503" }]);
  expect(await outboxRows(inbox)).toMatchObject([{ published: true, done: false }]);
});

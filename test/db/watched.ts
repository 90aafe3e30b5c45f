/** A receiver whose cron runs as Cloudflare would run it, and somebody who is told what goes wrong. */
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { onTestFinished } from "vitest";
import { endpoints } from "../../src/endpoints.ts";
import { runSchedule } from "../../src/schedule.ts";
import {
  anInvoiceEvent,
  collectingContext,
  openTestbed,
  SECRET,
  type Testbed,
} from "../worker/testbed.ts";

export const TICK = "* * * * *";
export const NIGHT = "17 3 * * *";

export interface Told {
  readonly alert: string;
  readonly state: "firing" | "ok";
  readonly level: number;
  readonly summary: string;
  readonly todo: string | null;
  readonly text: string;
}

/** Somebody who is told, and answers as `status` says when asked. */
export async function aListener(status: () => number | "silence" = () => 200) {
  const told: Told[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const answer = status();
      told.push(JSON.parse(Buffer.concat(chunks).toString()));
      if (answer === "silence") return request.socket.destroy();
      response.writeHead(answer, { location: "https://elsewhere.test/" }).end();
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => void server.close());
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- It listens on TCP.
  const { port } = server.address() as AddressInfo;
  return { told, url: `http://127.0.0.1:${port}/hook/T0PSECRET` };
}

export interface Watched {
  readonly inbox: Testbed;
  readonly cron: (cron?: string, env?: Readonly<Record<string, unknown>>) => Promise<void>;
}

export async function watched(env: Readonly<Record<string, unknown>> = {}): Promise<Watched> {
  const inbox = await openTestbed();
  const bindings = {
    HYPERDRIVE: { connectionString: inbox.databaseUrl },
    STRIPE_WEBHOOK_SECRET: SECRET,
    ...env,
  };
  return {
    inbox,
    cron: async (cron = TICK, over = {}) => {
      const { ctx, settled } = collectingContext();
      await runSchedule(cron, endpoints, { ...bindings, ...over }, (rest) => ctx.waitUntil(rest));
      await settled();
    },
  };
}

export const needsReview = ({ inbox }: Watched) =>
  inbox.deliver(anInvoiceEvent("invoice.paid", { amountPaid: -1 }));
export const states = (told: readonly Told[]) =>
  told.map(({ alert, state }) => `${alert} ${state}`);
/** As if it had been told so long ago, and a failure's back-off were over. */
export const age = ({ inbox }: Watched, ago: string) =>
  inbox.rows(`update alert_states set told_at = told_at - interval '${ago}', available_at = now()`);

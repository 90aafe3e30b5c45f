/**
 * The broken receivers, each an endpoint of one Worker: fixtures of the proof, which must find out
 * what is wrong with each of them. They never were part of the product.
 */
import { Client } from "pg";
import { believesCommit } from "./believes-commit.ts";
import type { PaidEvent, Receive } from "./booking.ts";
import { markFirst } from "./mark-first.ts";
import { queuesCommit } from "./queues-commit.ts";
import { timeoutIsDuplicate } from "./timeout-is-duplicate.ts";
import { workFirst } from "./work-first.ts";

const receivers: Readonly<Record<string, Receive>> = {
  "mark-first": markFirst,
  "work-first": workFirst,
  "believes-commit": believesCommit,
  "queues-commit": queuesCommit,
  "timeout-is-duplicate": timeoutIsDuplicate,
};

interface Env {
  readonly HYPERDRIVE: { readonly connectionString: string };
}

export default {
  fetch: async (request: Request, env: Env): Promise<Response> => {
    const receive = receivers[new URL(request.url).pathname.replace(/^.*\//, "")];
    if (receive === undefined) return new Response(null, { status: 404 });
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- The proof's own events reach it.
    const event = (await request.json()) as PaidEvent;
    const client = new Client({ connectionString: env.HYPERDRIVE.connectionString });
    client.on("error", () => undefined);
    try {
      await client.connect();
      return Response.json({ outcome: await receive(event, client), event: event.id });
    } catch {
      return Response.json({ outcome: "failed", event: event.id }, { status: 500 });
    } finally {
      await client.end();
    }
  },
};

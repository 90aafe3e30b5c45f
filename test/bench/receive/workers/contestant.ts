/**
 * What the bare contestants share: an event is verified by Stripe's own library, a connection is
 * opened for it, and closed behind the answer. Not imitated: deadlines, limits of a body, logs.
 */
import { Client } from "pg";
import { Stripe } from "stripe";
import { type Paid, readPaid } from "../statements.ts";

interface Env {
  readonly HYPERDRIVE: { readonly connectionString: string };
  readonly STRIPE_WEBHOOK_SECRET: string;
}

interface Context {
  readonly waitUntil: (rest: Promise<unknown>) => void;
}

interface Contestant {
  readonly fetch: (request: Request, env: Env, ctx: Context) => Promise<Response>;
}

const webCrypto = Stripe.createSubtleCryptoProvider();

/** A Worker that verifies, and does `work` with what it verified. */
export function verifyingWorker(
  work: (paid: Paid, env: Env, ctx: Context) => Promise<void>,
): Contestant {
  return {
    fetch: async (request, env, ctx) => {
      const body = await request.text();
      let paid: Paid;
      try {
        const header = request.headers.get("stripe-signature") ?? "";
        const secret = env.STRIPE_WEBHOOK_SECRET;
        const { webhooks } = Stripe;
        paid = readPaid(
          await webhooks.constructEventAsync(body, header, secret, undefined, webCrypto),
          body,
        );
      } catch {
        return Response.json({ outcome: "invalid" }, { status: 400 });
      }
      try {
        await work(paid, env, ctx);
      } catch {
        return Response.json({ outcome: "failed" }, { status: 500 });
      }
      return Response.json({ outcome: "processed", event: paid.eventId });
    },
  };
}

/** The same, with a connection. */
export function connectingWorker(
  work: (paid: Paid, client: Client) => Promise<unknown>,
): Contestant {
  return verifyingWorker(async (paid, env, ctx) => {
    const client = new Client({ connectionString: env.HYPERDRIVE.connectionString });
    client.on("error", () => undefined);
    await client.connect();
    try {
      await work(paid, client);
    } finally {
      ctx.waitUntil(client.end());
    }
  });
}

/**
 * The textbook Node server: Fastify, Stripe's library, and a pool of connections that stay open.
 * Started by `node-process.ts`, to whom it tells its port; it ends with it.
 */
import Fastify from "fastify";
import { Pool } from "pg";
import { Stripe } from "stripe";
import { readPaid } from "./statements.ts";
import { bookByTextbook } from "./textbook.ts";

const secret = process.env["STRIPE_WEBHOOK_SECRET"] ?? "";
const pool = new Pool({
  connectionString: process.env["DATABASE_URL"],
  max: Number(process.env["POOL_SIZE"]),
});
pool.on("error", () => undefined);
const server = Fastify();

server.addContentTypeParser("application/json", { parseAs: "string" }, (_, body, done) =>
  done(null, body),
);

server.post("/webhooks/stripe/billing", async (request, reply) => {
  const body = String(request.body);
  const header = request.headers["stripe-signature"] ?? "";
  let event: Stripe.Event;
  try {
    event = Stripe.webhooks.constructEvent(body, header, secret);
  } catch {
    return reply.code(400).send({ outcome: "invalid" });
  }
  const client = await pool.connect();
  try {
    await bookByTextbook(readPaid(event, body), client);
  } finally {
    client.release();
  }
  return { outcome: "processed", event: event.id };
});

const url = await server.listen({ port: 0, host: "127.0.0.1" });
process.send?.(url);
process.once("disconnect", () => process.exit());

/**
 * Broken: it does the work in one transaction, and marks the event as settled in the next.
 * What ends it in between leaves the work without the mark. Stripe comes back, and all of it is done
 * again. A key protects the invoice and the ledger here; the message to the world has none, and
 * leaves twice.
 */
import { lookUp, mark, type Receive, work } from "./booking.ts";

export const workFirst: Receive = async (event, client) => {
  const { rowCount } = await client.query(lookUp(event));
  if (rowCount !== 0) return "duplicate";

  await client.query("begin");
  for (const write of work(event)) await client.query(write);
  await client.query("commit");

  await client.query("begin");
  await client.query(mark(event));
  await client.query("commit");
  return "processed";
};

/**
 * Broken: it marks the event as settled in one transaction, and does the work in the next.
 * What ends it in between (a cut, a crash, a refused statement) leaves the mark without the work.
 * Stripe comes back, finds the mark, and hears `duplicate`: the payment is lost for ever.
 */
import { mark, type Receive, work } from "./booking.ts";

export const markFirst: Receive = async (event, client) => {
  await client.query("begin");
  const { rowCount } = await client.query(mark(event));
  await client.query("commit");
  if (rowCount === 0) return "duplicate";

  await client.query("begin");
  for (const write of work(event)) await client.query(write);
  await client.query("commit");
  return "processed";
};

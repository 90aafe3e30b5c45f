/**
 * Broken: one transaction, as it should be, but a COMMIT that does not fail counts as committed.
 * It lets go of its writes' errors, as any of them would make COMMIT fail. It does not: the COMMIT of
 * an aborted transaction answers with the tag ROLLBACK, and without an error. Stripe hears
 * `processed`, nothing is there, and nobody comes back.
 */
import { mark, type Receive, work } from "./booking.ts";

export const believesCommit: Receive = async (event, client) => {
  await client.query("begin");
  const { rowCount } = await client.query(mark(event));
  if (rowCount === 0) {
    await client.query("rollback");
    return "duplicate";
  }
  for (const write of work(event)) client.query(write).catch(() => undefined);
  await client.query("commit");
  return "processed";
};

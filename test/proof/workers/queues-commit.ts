/**
 * Broken: it queues COMMIT behind its writes before it knows that the driver takes each of them.
 * It looks at every answer, and at COMMIT's tag. But a write with a parameter that cannot be encoded
 * never leaves the driver, and COMMIT behind it does: the mark is committed without that write. The
 * error is seen and answered with a 500, which is too late: Stripe comes back and finds the mark.
 */
import { mark, type Receive, work } from "./booking.ts";

export const queuesCommit: Receive = async (event, client) => {
  await client.query("begin");
  const { rowCount } = await client.query(mark(event));
  if (rowCount === 0) {
    await client.query("rollback");
    return "duplicate";
  }
  const queries = [...work(event), { text: "commit" }].map((query) => client.query(query));
  await Promise.allSettled(queries);
  const { command } = (await Promise.all(queries)).at(-1) ?? {};
  if (command !== "COMMIT") throw new Error("The transaction was rolled back.");
  return "processed";
};

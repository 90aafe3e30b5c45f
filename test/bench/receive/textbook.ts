/** The textbook form of booking an event, for the Worker and for the Node server alike. */
import type { ClientBase } from "pg";
import { effects, insertEvent, lookUp, markProcessed, type Paid } from "./statements.ts";

/** Eight statements for a new event, each awaited before the next is sent. */
export async function bookByTextbook(paid: Paid, client: ClientBase): Promise<void> {
  await client.query("begin");
  try {
    const known = await client.query(lookUp(paid));
    if (known.rowCount === 0) {
      await client.query(insertEvent(paid));
      for (const effect of effects(paid)) await client.query(effect);
      await client.query(markProcessed(paid));
    }
    await client.query("commit");
  } catch (error) {
    await client.query("rollback");
    throw error;
  }
}

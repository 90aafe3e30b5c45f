/** A control: an invoice is what the newest arrival says, however old its news are. */
import { sql } from "drizzle-orm";
import { spoiledWorker } from "./spoiled.ts";

export default spoiledWorker((tx, _, { id, says }) => {
  const paid = says === "paid";
  return tx.execute(sql`update invoices set status = coalesce(${says}::text, status),
    paid_at = case when ${paid}::boolean then now() end,
    amount_paid = case when ${paid}::boolean then amount_paid else 0 end
    where id = ${id} and ${says}::text is not null`);
});

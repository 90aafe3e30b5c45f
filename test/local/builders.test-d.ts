/** What the compiler says of made-up events: compiled by `npm run check`, and never run. */
import { anEvent } from "./index.ts";

export const events = [
  anEvent("customer.updated", { id: "cus_1", balance: "of any value" }),
  // @ts-expect-error -- A customer has no such field.
  anEvent("customer.updated", { ballance: 0 }),
  // @ts-expect-error -- Stripe has no such event.
  anEvent("customer.updatet", {}),
];

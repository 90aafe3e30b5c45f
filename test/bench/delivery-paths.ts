/** The paths that a delivery can take through the receiver; some need a world to happen in. */
import { stripeEvent } from "../local/events.ts";
import { AMOUNT, paidEvent } from "./waiting-events.ts";

export interface Path {
  readonly name: string;
  readonly status: number;
  readonly outcome: string;
  /** Ids are the same in every path of one round, so that later paths meet what earlier ones did. */
  readonly event: (id: string) => object;
  /** SQL. */
  readonly before?: string;
}

const BREAK = `create or replace function refuse() returns trigger language plpgsql as
  $$ begin raise exception 'refused'; end $$;
  create trigger refuse before insert on ledger_entries for each row execute function refuse()`;
const MEND = "drop trigger refuse on ledger_entries";

const paid = (id: string) => paidEvent(id, AMOUNT);
const duplicate = { name: "duplicate", status: 200, outcome: "duplicate", event: paid } as const;
const ignored: Path = {
  name: "ignored (no handler)",
  status: 200,
  outcome: "ignored",
  event: (id) =>
    stripeEvent(
      "customer.updated",
      { id: "cus_bench" },
      {
        id: `${id}_ignored`,
        apiVersion: "2026-10-28.endive",
        livemode: false,
        created: 1_790_000_000,
      },
    ),
};

export const SYNC_PATHS: readonly Path[] = [
  { name: "new event", status: 200, outcome: "processed", event: paid },
  duplicate,
  ignored,
  {
    name: "the handler refuses, the refusal is recorded",
    status: 200,
    outcome: "needs_review",
    event: (id) => paidEvent(`${id}_refused`, -1),
  },
  {
    name: "the database refuses, the failure is recorded",
    status: 500,
    outcome: "failed",
    event: (id) => paid(`${id}_failed`),
    before: BREAK,
  },
  {
    name: "redelivery after a recorded failure",
    status: 200,
    outcome: "processed",
    event: (id) => paid(`${id}_failed`),
    before: MEND,
  },
];

export const ASYNC_PATHS: readonly Path[] = [
  { name: "async: new event", status: 200, outcome: "stored", event: paid },
  { ...duplicate, name: "async: duplicate" },
  { ...ignored, name: "async: ignored (no handler)" },
];

/** What the handlers' SQL makes of an invoice is what the lifecycle's table says, cell by cell. */
import { expect, test } from "vitest";
import {
  INVOICE_EVENTS,
  INVOICE_STATUSES,
  type InvoiceEventType,
  type InvoiceStatus,
  isStatus,
  transition,
} from "../../src/billing/lifecycle.ts";
import type { InvoiceEventType as EventType } from "../local/events.ts";
import { withFields } from "../worker/invoices.ts";
import { anInvoiceEvent } from "../worker/testbed.ts";
import { type KeptReceiver, openKeptReceiver } from "./kept-receiver.ts";

const STATES = ["absent", ...INVOICE_STATUSES] as const;
const TYPES: readonly EventType[] = [...eventTypes(), "invoice.deleted"];
/** What the event's object carries as its status. */
const CARRIED = [undefined, null, ...INVOICE_STATUSES] as const;

type State = (typeof STATES)[number];
type Carried = (typeof CARRIED)[number];

interface Cell {
  readonly state: State;
  readonly type: EventType;
  readonly carried: Carried;
}

interface End {
  /** Processed, or the reason why the event waits for a person. */
  readonly outcome: string;
  readonly status: State;
  readonly amountPaid: number;
  readonly entries: number;
  readonly messages: number;
  readonly discrepancies: readonly string[];
  /** Whether the row differs from what it was before the event. */
  readonly changed: boolean;
}

const AMOUNT = 4200;
const CELLS: readonly Cell[] = STATES.flatMap((state) =>
  TYPES.flatMap((type) => CARRIED.map((carried) => ({ state, type, carried }))),
);

const nameOf = ({ state, type, carried }: Cell): string => `${state} + ${type} (${carried})`;
const idOf = (cell: Cell): string => `in ${nameOf(cell)}`;

test("every state, event and status that its object may carry, all of them", async () => {
  const inbox = await openKeptReceiver();
  const known = CELLS.filter(({ state }) => state !== "absent");
  await inbox.rows(
    `insert into invoices (id, status, customer_id, currency, paid_at, updated_at)
      select id, status, 'cus_test', 'eur', case when status = 'paid' then past end, past
      from unnest($1::text[], $2::text[]) as known (id, status),
        (values (timestamptz '2020-02-02')) as times (past)`,
    [known.map(idOf), known.map(({ state }) => state)],
  );

  for (const cell of CELLS) {
    const event = anInvoiceEvent(cell.type, { id: idOf(cell), amountPaid: AMOUNT });
    await inbox.receive(withFields(event, { status: cell.carried }));
  }

  expect(CELLS).toHaveLength(6 * 9 * 7);
  expect(await ends(inbox)).toEqual(
    CELLS.map((cell) => ({ name: nameOf(cell), end: endByTable(cell) })),
  );
});

/** What became of each invoice, in the order of the cells. */
async function ends(inbox: KeptReceiver): Promise<Record<string, unknown>[]> {
  return inbox.rows(
    `select name, jsonb_build_object(
        'outcome', coalesce(outcome, last_error),
        'status', coalesce(status, 'absent'),
        'amountPaid', coalesce(amount_paid, 0),
        'entries', (select count(*) from ledger_entries where invoice_id = object_id),
        'messages', (select count(*) from outbox where aggregate_id = object_id),
        'discrepancies', array(select kind from discrepancies found
          where found.object_id = event.object_id),
        'changed', coalesce(updated_at <> '2020-02-02', false)) as end
      from unnest($1::text[], $2::text[]) with ordinality as cells (name, invoice_id, position)
        left join webhook_inbox event on object_id = invoice_id
        left join invoices on id = invoice_id
      order by position`,
    [CELLS.map(nameOf), CELLS.map(idOf)],
  );
}

function endByTable({ state, type, carried }: Cell): End {
  const unchanged = {
    status: state,
    amountPaid: 0,
    entries: 0,
    messages: 0,
    discrepancies: [],
    changed: false,
  };
  // A deletion is the one event that the table does not know: nothing comes of it.
  if (type === "invoice.deleted") return { outcome: "processed", ...unchanged };

  const { names, books } = INVOICE_EVENTS[type];
  const says = carried ?? names;
  if (books === "always" && says !== "paid") {
    return { outcome: "PermanentError:paid_event_of_unpaid_invoice", ...unchanged };
  }

  const cell = cellOf(state, says);
  const status = isStatus(cell) ? cell : state;
  const booked = books !== "never" && says === "paid" && status === "paid";
  const contradicts =
    (cell === "paid_after_void" && books !== "never") ||
    (cell === "void_after_paid" && type === "invoice.voided");
  return {
    outcome: "processed",
    status,
    amountPaid: booked ? AMOUNT : 0,
    entries: booked ? 1 : 0,
    messages: booked ? 1 : 0,
    discrepancies: contradicts ? [cell] : [],
    changed: status !== state || booked,
  };
}

/** A new invoice is what the event says; open, when it does not say. */
function cellOf(state: State, says: InvoiceStatus | null): string {
  if (state === "absent") return says ?? "open";
  return says === null ? "stale" : transition(state, says);
}

function eventTypes(): readonly InvoiceEventType[] {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- An object's keys are its keys.
  return Object.keys(INVOICE_EVENTS) as InvoiceEventType[];
}

/**
 * Pure: the states of an invoice, and what each event may make of them.
 * Stripe's own lifecycle: https://docs.stripe.com/invoicing/overview#invoice-statuses
 */

export const INVOICE_STATUSES = ["draft", "open", "uncollectible", "paid", "void"] as const;
export type InvoiceStatus = (typeof INVOICE_STATUSES)[number];

/** Two facts that cannot both be right: a person must look. */
export type Contradiction = "paid_after_void" | "void_after_paid";

type Cell = InvoiceStatus | "stale" | Contradiction;
type Row = readonly [Cell, Cell, Cell, Cell, Cell];

/**
 * What a state becomes when an event says another. `stale`: the event is older news, in whatever
 * order it arrives. `uncollectible` is not the end; `paid` and `void` are.
 */
const LIFECYCLE: Readonly<Record<InvoiceStatus, Row>> = {
  // says:        draft    open     uncollectible    paid               void
  draft: ["stale", "open", "uncollectible", "paid", "void"],
  open: ["stale", "stale", "uncollectible", "paid", "void"],
  uncollectible: ["stale", "stale", "stale", "paid", "void"],
  paid: ["stale", "stale", "stale", "stale", "void_after_paid"],
  void: ["stale", "stale", "stale", "paid_after_void", "stale"],
};

interface EventMeaning {
  /** The status of an object that carries none (API versions before 2018-11); null: no news. */
  readonly names: InvoiceStatus | null;
  /** Whether it speaks of money: for one payment two types do, and whichever comes first books. */
  readonly books: "never" | "when_paid" | "always";
}

/** What a type adds to the status that its invoice carries. */
export const INVOICE_EVENTS = {
  "invoice.created": { names: "draft", books: "never" },
  "invoice.finalized": { names: "open", books: "never" },
  "invoice.updated": { names: null, books: "never" },
  "invoice.payment_failed": { names: "open", books: "never" },
  "invoice.marked_uncollectible": { names: "uncollectible", books: "never" },
  "invoice.voided": { names: "void", books: "never" },
  "invoice.paid": { names: "paid", books: "always" },
  // Also sent when a part was paid, while the invoice stays open.
  "invoice.payment_succeeded": { names: "paid", books: "when_paid" },
} as const satisfies Readonly<Record<string, EventMeaning>>;

export type InvoiceEventType = keyof typeof INVOICE_EVENTS;

/** What the table holds for an invoice in `state` when an event says `says`. */
export function transition(state: InvoiceStatus, says: InvoiceStatus): Cell {
  return LIFECYCLE[state][INVOICE_STATUSES.indexOf(says)] ?? "stale";
}

/** What moves an invoice: its state, and what an event says of it. */
export const MOVES = cells().filter(({ cell }) => isStatus(cell));

/** What a state contradicts, and how. */
export const CONTRADICTIONS = cells().flatMap(({ state, says, cell }) =>
  cell === "stale" || isStatus(cell) ? [] : [{ state, says, kind: cell }],
);

function cells() {
  return INVOICE_STATUSES.flatMap((state) =>
    INVOICE_STATUSES.map((says) => ({ state, says, cell: transition(state, says) })),
  );
}

export function isStatus(value: unknown): value is InvoiceStatus {
  return INVOICE_STATUSES.some((status) => status === value);
}

/** Whatever is told of an invoice, in whatever order, the books are what the rules make of it. */
import * as fc from "fast-check";
import { expect, test } from "vitest";
import { INVOICE_EVENT_TYPES, type InvoiceEventType, type StripeEvent } from "../local/events.ts";
import { API_VERSIONS, type ApiVersion } from "../local/invoice-shapes.ts";
import { booksOf, type InvoiceBooks, withFields } from "../worker/invoices.ts";
import { anInvoiceEvent, freshId } from "../worker/testbed.ts";
import { NOTHING_TOLD, tell, type Told } from "./invoice-fold.ts";
import { type KeptReceiver, openKeptReceiver } from "./kept-receiver.ts";

/** One event before it has ids. */
interface Word {
  readonly type: InvoiceEventType;
  readonly apiVersion: ApiVersion;
  /** Replacing those of the invoice; undefined removes one. */
  readonly fields: Readonly<Record<string, unknown>>;
}

/** Ends before the test's own time does, so that a failure is reported with its seed. */
const BOUNDS = { interruptAfterTimeLimit: 40_000 } as const;

const types = fc.constantFrom(...INVOICE_EVENT_TYPES);
/** Money is where events can contradict each other. */
const typesOfMoney = fc.constantFrom("invoice.paid", "invoice.payment_succeeded", "invoice.voided");
const apiVersions = fc.constantFrom(...API_VERSIONS);

/** The likely first, the odd seldom. */
const seldom = <T>(likely: fc.Arbitrary<T>, ...odd: T[]): fc.Arbitrary<T> =>
  fc.oneof({ arbitrary: likely, weight: 19 }, { arbitrary: fc.constantFrom(...odd), weight: 1 });

const anything: fc.Arbitrary<Word> = fc.record({
  type: fc.oneof(types, typesOfMoney),
  apiVersion: apiVersions,
  fields: fc.record({
    status: seldom<unknown>(
      fc.constantFrom("draft", "open", "uncollectible", "paid", "paid", "paid", "void", undefined),
      null,
      "refunded",
      3,
    ),
    amount_paid: seldom<unknown>(fc.constantFrom(0, 100, 100, 100, 250), undefined, -1, "100", 0.5),
    currency: seldom<unknown>(fc.constantFrom("eur", "eur", "usd", undefined), null, "EUR", "e"),
    customer: seldom<unknown>(
      fc.constantFrom("cus_a", "cus_b", undefined, { id: "cus_a" }),
      null,
      "",
      7,
    ),
  }),
});

test("a history of anything, told event by event, ends as the rules say", async () => {
  const inbox = await openKeptReceiver();
  await fc.assert(
    fc.asyncProperty(fc.array(anything, { minLength: 1, maxLength: 8 }), async (words) => {
      const id = freshId("in");
      const events = words.map((word) => eventOf(word, id));
      expect(await tellAll(inbox, id, events)).toEqual(events.reduce(tell, NOTHING_TOLD));
    }),
    { ...BOUNDS, numRuns: 400 },
  );
});

type Fate = "paid" | "void" | "unsettled";

/** A history in which nothing contradicts anything: one end, one sum, one customer. */
const consistent = fc
  .record({
    fate: fc.constantFrom<Fate>("paid", "void", "unsettled"),
    money: fc.constantFrom(0, 100),
  })
  .chain(({ fate, money }) =>
    fc.array(consistentWord(fate, money), { minLength: 2, maxLength: 6 }),
  );

function consistentWord(fate: Fate, money: number): fc.Arbitrary<Word> {
  const reached = fate === "unsettled" ? [] : [fate, fate];
  return fc
    .record({
      type: types.filter((type) => fate === "paid" || type !== "invoice.paid"),
      apiVersion: apiVersions,
      status: fc.constantFrom("draft", "open", "uncollectible", ...reached),
      known: fc.boolean(),
    })
    .map(({ type, apiVersion, status, known }) => ({
      type,
      apiVersion,
      fields: {
        status: type === "invoice.paid" ? "paid" : status,
        amount_paid: money,
        // Whoever books must know them: a message takes what is known by then.
        ...(known || isPayment(type) ? { currency: "eur", customer: "cus_a" } : UNNAMED),
      },
    }));
}

const UNNAMED = { currency: undefined, customer: undefined };

function isPayment(type: InvoiceEventType): boolean {
  return type === "invoice.paid" || type === "invoice.payment_succeeded";
}

test("a history without contradictions ends alike in whatever order it is told", async () => {
  const inbox = await openKeptReceiver();
  const twoOrders = consistent.chain((words) => {
    const order = fc.shuffledSubarray(words, { minLength: words.length });
    return fc.record({ one: order, other: order });
  });
  await fc.assert(
    fc.asyncProperty(twoOrders, async ({ one, other }) => {
      const ends: InvoiceBooks[] = [];
      for (const words of [one, other]) {
        const id = freshId("in");
        const { books, outcomes } = await tellAll(
          inbox,
          id,
          words.map((word) => eventOf(word, id)),
        );
        expect(new Set(outcomes)).toEqual(new Set(["processed"]));
        expect(books.discrepancies).toEqual([]);
        ends.push(withoutIds(books));
      }
      expect(ends[1]).toEqual(ends[0]);
    }),
    { ...BOUNDS, numRuns: 100 },
  );
});

function eventOf({ type, apiVersion, fields }: Word, id: string): StripeEvent {
  return withFields(anInvoiceEvent(type, { id }, { apiVersion }), fields);
}

/** What the books say after these events, and which of them, by the time of its transaction. */
async function tellAll(
  inbox: KeptReceiver,
  id: string,
  events: readonly StripeEvent[],
): Promise<Told> {
  const outcomes: Told["outcomes"][number][] = [];
  for (const event of events) {
    const outcome = await inbox.receive(event);
    if (outcome !== "processed" && outcome !== "needs_review") {
      throw new Error(`${event.type} came to ${outcome}`);
    }
    outcomes.push(outcome);
  }
  const [row] = await inbox.rows(
    `select
      (select event_id from webhook_inbox
        where object_id = id and processed_at = paid_at) as paid_by,
      (select event_id from webhook_inbox
        where object_id = id and processed_at = updated_at) as changed_by
    from invoices where id = $1`,
    [id],
  );
  return {
    books: await booksOf(inbox, id),
    outcomes,
    paidBy: textOrNull(row?.["paid_by"]),
    changedBy: textOrNull(row?.["changed_by"]),
  };
}

function textOrNull(value: unknown): string | null {
  return typeof value === "string" ? value : null;
}

/** The same for two invoices that were told the same. */
function withoutIds(books: InvoiceBooks): InvoiceBooks {
  const none = { event_id: "", invoice_id: "" };
  return {
    ...books,
    entries: books.entries.map((entry) => ({ ...entry, event_id: "" })),
    messages: books.messages.map((message) => ({ ...message, ...none })),
  };
}

/** Whatever is told of an invoice within one batch, the books are those of some order, one by one. */
import * as fc from "fast-check";
import { Client } from "pg";
import { expect, onTestFinished, test } from "vitest";
import { INVOICE_EVENT_TYPES, type InvoiceEventType, type StripeEvent } from "../local/events.ts";
import { booksOf, type InvoiceBooks, withFields } from "../worker/invoices.ts";
import { anInvoiceEvent, freshId, openTestbed, type Testbed } from "../worker/testbed.ts";
import { openBatcher } from "./batched.ts";
import { NOTHING_TOLD, tell } from "./invoice-fold.ts";

/** One event before it has ids. */
interface Word {
  /** Of which invoice it speaks. */
  readonly invoice: number;
  readonly type: InvoiceEventType;
  readonly fields: Readonly<Record<string, unknown>>;
}

/** Ends before the test's own time does, so that a failure is reported with its seed. */
const BOUNDS = { interruptAfterTimeLimit: 40_000 } as const;
const INVOICES = 3;

const types = fc.oneof(
  fc.constantFrom(...INVOICE_EVENT_TYPES),
  fc.constantFrom<InvoiceEventType>("invoice.paid", "invoice.payment_succeeded", "invoice.voided"),
);

const anything: fc.Arbitrary<Word> = fc.record({
  invoice: fc.nat(INVOICES - 1),
  type: types,
  fields: fc.record({
    status: fc.constantFrom("draft", "open", "uncollectible", "paid", "paid", "void", undefined),
    amount_paid: fc.constantFrom(0, 100, 100, 250, -1),
    currency: fc.constantFrom("eur", "eur", "usd", undefined),
    customer: fc.constantFrom("cus_a", "cus_b", undefined),
  }),
});

/** Of one invoice, by events that disagree in all that they say of it. */
const payments: fc.Arbitrary<Word> = fc.record({
  invoice: fc.constant(0),
  type: fc.constantFrom<InvoiceEventType>("invoice.paid", "invoice.payment_succeeded"),
  fields: fc.record({
    status: fc.constant("paid"),
    amount_paid: fc.constantFrom(0, 100, 250),
    currency: fc.constantFrom("eur", "usd", undefined),
    customer: fc.constantFrom("cus_a", "cus_b", "cus_c"),
  }),
});

test.each<[string, fc.Arbitrary<Word[]>, number]>([
  ["anything", fc.array(anything, { minLength: 2, maxLength: 9 }), 300],
  ["payments that disagree", fc.array(payments, { minLength: 2, maxLength: 4 }), 100],
])("a batch of %s ends as one by one, in some order", async (_, histories, numRuns) => {
  const stand = await openStand();
  await fc.assert(
    fc.asyncProperty(histories, async (words) => {
      fc.pre(mostOfOne(words) <= 5);
      const told = await stand.tellTogether(words);
      for (const { id, events } of told) {
        const ends = permutations(events).map((order) => order.reduce(tell, NOTHING_TOLD).books);
        expect(ends).toContainEqual(await booksOf(stand, id));
      }
    }),
    { ...BOUNDS, numRuns },
  );
});

/** A history in which nothing contradicts anything: one end, in whatever order. */
const consistent = fc.record({
  fate: fc.constantFrom("paid", "void"),
  words: fc.shuffledSubarray(
    ["invoice.created", "invoice.finalized", "invoice.updated", "last", "last again"] as const,
    { minLength: 2 },
  ),
});

test("batches without contradictions leave the same books as one by one", async () => {
  const stand = await openStand();
  await fc.assert(
    fc.asyncProperty(fc.array(consistent, { minLength: 1, maxLength: 4 }), async (histories) => {
      const words = histories.flatMap(({ fate, words: of }, invoice) =>
        of.map((word): Word => consistentWord(invoice, fate, word)),
      );
      const together = await stand.tellTogether(words);
      const apart = await stand.tellApart(words);
      for (const [index, { id }] of together.entries()) {
        const other = apart[index];
        if (!other) throw new Error("Bug! The same was told twice.");
        const [one, two] = [await booksOf(stand, id), await booksOf(stand, other.id)];
        expect(withoutIds(one)).toEqual(withoutIds(two));
        expect(one.discrepancies).toEqual([]);
      }
    }),
    { ...BOUNDS, numRuns: 80 },
  );
});

function consistentWord(invoice: number, fate: string, word: string): Word {
  const paid = fate === "paid";
  const fields = { status: fate, amount_paid: 100, currency: "eur", customer: "cus_a" };
  switch (word) {
    case "last":
      return { invoice, type: paid ? "invoice.paid" : "invoice.voided", fields };
    case "last again":
      return { invoice, type: paid ? "invoice.payment_succeeded" : "invoice.voided", fields };
    default:
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- The others are types.
      return { invoice, type: word as InvoiceEventType, fields: { ...fields, status: "open" } };
  }
}

interface Telling {
  readonly id: string;
  readonly events: readonly StripeEvent[];
}

interface Stand extends Pick<Testbed, "rows"> {
  /** In one batch, and one by one what that leaves; nothing but permanent failures may be left. */
  readonly tellTogether: (words: readonly Word[]) => Promise<readonly Telling[]>;
  readonly tellApart: (words: readonly Word[]) => Promise<readonly Telling[]>;
}

async function openStand(): Promise<Stand> {
  const inbox = await openTestbed();
  const batcher = await openBatcher(inbox);
  const reader = new Client({ connectionString: inbox.databaseUrl, application_name: "test" });
  await reader.connect();
  onTestFinished(() => reader.end());
  const rows: Stand["rows"] = async (statement, values = []) =>
    (await reader.query(statement, values)).rows;
  const store = async (words: readonly Word[]): Promise<readonly Telling[]> => {
    const ids = Array.from({ length: INVOICES + 1 }, () => freshId("in"));
    const events = words.map((word) => eventOf(word, ids[word.invoice] ?? ""));
    await rows(
      `insert into webhook_inbox (endpoint, event_id, event_type, payload)
        select 'billing', event ->> 'id', event ->> 'type', event
        from jsonb_array_elements($1::jsonb) as events (event)`,
      [JSON.stringify(events)],
    );
    return ids.map((id) => ({ id, events: events.filter((event) => aboutOf(event) === id) }));
  };
  return {
    rows,
    tellTogether: async (words) => {
      const told = await store(words);
      const { processed, left } = await batcher.together(await batcher.claimAll());
      expect(processed + left.length).toBe(words.length);
      for (const claim of left) {
        expect(await batcher.alone(claim)).toMatchObject({ outcome: "needs_review" });
      }
      return told;
    },
    tellApart: async (words) => {
      const told = await store(words);
      for (const claim of await batcher.claimAll()) {
        expect(await batcher.alone(claim)).toEqual({ outcome: "processed" });
      }
      return told;
    },
  };
}

function eventOf({ type, fields }: Word, id: string): StripeEvent {
  return withFields(anInvoiceEvent(type, { id }), fields);
}

function aboutOf(event: StripeEvent): unknown {
  return event.data?.object["id"];
}

function mostOfOne(words: readonly Word[]): number {
  const counts = Array.from(
    { length: INVOICES },
    (_, n) => words.filter(({ invoice }) => invoice === n).length,
  );
  return Math.max(...counts);
}

function permutations<T>(all: readonly T[]): T[][] {
  if (all.length === 0) return [[]];
  return all.flatMap((one, index) =>
    permutations(all.toSpliced(index, 1)).map((rest) => [one, ...rest]),
  );
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

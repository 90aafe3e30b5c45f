/** `npm run verify`: what differs from Stripe is found, opened once, and repaired where it is safe. */
import { expect, test } from "vitest";
import { expectedBooks } from "../local/books.ts";
import { compareBooks, readBooks } from "../local/audit.ts";
import { makeStream } from "../local/stream.ts";
import { query } from "../worker/testbed.ts";
import { aPayment, HOUR, openReconciled, type Reconciled } from "./reconciled.ts";
import { booked, found, verify } from "./verifying.ts";

test("where all agree, it says so, and exits with 0", async () => {
  const reconciled = await openReconciled();
  for (let invoices = 0; invoices < 3; invoices++) await booked(reconciled);
  expect(await verify(reconciled)).toEqual({
    status: 0,
    text: "3 invoices compared: 0 differences.\n",
  });
  expect(await found(reconciled)).toEqual([]);
});

/** One of each kind, among invoices that agree: by what is done to the books, or to Stripe. */
async function plant(reconciled: Reconciled): Promise<Readonly<Record<string, string>>> {
  const { inbox, api, happened } = reconciled;
  const { lists } = api;
  for (let invoices = 0; invoices < 120; invoices++) await booked(reconciled);
  const there = aPayment();
  happened(HOUR, there);
  const planted = {
    missing_here: String(there.data?.object["id"]),
    missing_at_stripe: await booked(reconciled),
    payment_mismatch: await booked(reconciled),
    status_differs: await booked(reconciled),
    void_after_paid: await booked(reconciled),
    paid_after_void: await booked(reconciled),
  };
  lists.removeInvoice(planted.missing_at_stripe);
  lists.changeInvoice(planted.payment_mismatch, { amount_paid: 4201 });
  lists.changeInvoice(planted.void_after_paid, { status: "void" });
  await inbox.rows(
    `update invoices set status = 'open', paid_at = null, amount_paid = 0
    where id = $1`,
    [planted.status_differs],
  );
  await inbox.rows(`delete from ledger_entries where invoice_id = $1`, [planted.paid_after_void]);
  await inbox.rows(
    `update invoices set status = 'void', paid_at = null, amount_paid = 0
    where id = $1`,
    [planted.paid_after_void],
  );
  return planted;
}

test("one planted difference of each kind is found, and nothing else; a second run opens none anew", async () => {
  const reconciled = await openReconciled();
  const planted = await plant(reconciled);
  const ran = await verify(reconciled);
  expect(ran.status).toBe(1);
  for (const [kind, id] of Object.entries(planted)) {
    expect(ran.text).toMatch(new RegExp(`^${kind}  ${id}  .*\\(opened\\)$`, "m"));
  }
  expect(ran.text).toContain("126 invoices compared: 6 differences.");
  const rows = await found(reconciled);
  expect(rows.map((row) => [row["kind"], row["object_id"]])).toEqual(
    Object.entries(planted).toSorted(([a], [b]) => a.localeCompare(b)),
  );
  const again = await verify(reconciled);
  expect(again.status).toBe(1);
  expect(again.text.match(/\(open\)$/gm)).toHaveLength(6);
  expect(await found(reconciled)).toEqual(rows);
});

test("--repair does what was missed through the handlers, and leaves the rest to a person", async () => {
  const reconciled = await openReconciled();
  const planted = await plant(reconciled);
  const before = await reconciled.inbox.books();
  const ran = await verify(reconciled, "--repair");
  expect(ran.status).toBe(1);
  expect(ran.text.match(/\(repaired\)$/gm)).toHaveLength(2);
  expect(await found(reconciled)).toMatchObject([
    { kind: "missing_at_stripe", open: true },
    { kind: "missing_here", open: false, resolution: expect.stringContaining("repaired") },
    { kind: "paid_after_void", open: true },
    { kind: "payment_mismatch", open: true },
    { kind: "status_differs", open: false },
    { kind: "void_after_paid", open: true },
  ]);
  const { inbox } = reconciled;
  expect(
    await inbox.rows(`select invoice_id, amount from ledger_entries where invoice_id = $1`, [
      planted["missing_here"],
    ]),
  ).toEqual([{ invoice_id: planted["missing_here"], amount: "4200" }]);
  // The entry of the other one was there all the time, and is not booked again.
  expect(await inbox.books()).toMatchObject({
    entries: before.entries + 1,
    messages: before.messages + 1,
  });
  expect(ran.text).toContain("6 differences, 2 of them settled.");
  expect((await verify(reconciled)).text).toContain(": 4 differences.");
});

test("a difference that was put right is gone; one that a person only said was is opened again", async () => {
  const reconciled = await openReconciled();
  const { inbox, api } = reconciled;
  await booked(reconciled);
  const id = await booked(reconciled);
  api.lists.changeInvoice(id, { status: "void" });
  const gone = await booked(reconciled);
  api.lists.removeInvoice(gone);
  await verify(reconciled);
  await inbox.rows(
    "update discrepancies set resolved_at = now(), resolution = 'seen to, ticket 7'",
  );

  const ran = await verify(reconciled);
  expect(ran).toMatchObject({
    status: 1,
    text: expect.stringContaining("2 differences, 1 of them settled."),
  });
  // The void of a paid invoice stays a fact; what was to be put right was not.
  expect(ran.text).toMatch(/^void_after_paid .*\(settled\)$/m);
  expect(ran.text).toMatch(/^missing_at_stripe .*\(opened\)$/m);
  expect(
    await inbox.rows(`select kind, resolved_at is null as open, detail ->> 'resolved_before' as note
      from discrepancies order by kind`),
  ).toEqual([
    { kind: "missing_at_stripe", open: true, note: "seen to, ticket 7" },
    { kind: "void_after_paid", open: false, note: null },
  ]);
});

test("an invoice that changed at Stripe in the last 15 minutes is not compared yet", async () => {
  const reconciled = await openReconciled();
  const { happened } = reconciled;
  await booked(reconciled);
  const event = aPayment("invoice.paid", { created: Math.floor(Date.now() / 1_000) - 60 });
  happened({ minutes: 1 }, event);
  expect(await verify(reconciled)).toEqual({
    status: 0,
    text: "1 invoices compared, 1 changed too lately to be compared: 0 differences.\n",
  });
});

test("nor is one that was booked here in the last 15 minutes, and is unknown to Stripe", async () => {
  const reconciled = await openReconciled();
  await booked(reconciled);
  await reconciled.inbox.deliver(aPayment());
  expect(await verify(reconciled)).toMatchObject({
    status: 0,
    text: expect.stringContaining("1 changed too lately"),
  });
});

test("a draft that never was here, or was deleted at Stripe, is no difference", async () => {
  const reconciled = await openReconciled();
  const { inbox, happened } = reconciled;
  await booked(reconciled);
  happened(HOUR, aPayment("invoice.created", { status: "draft", amountPaid: 0 }));
  const deleted = aPayment("invoice.created", { status: "draft", amountPaid: 0 });
  await inbox.deliver(deleted);
  expect(await verify(reconciled)).toMatchObject({ status: 0 });
});

test.each([
  ["a currency there", { currency: "usd" }],
  ["an amount there", { amount_paid: 1 }],
])("%s that is another one than was booked is found", async (_, fields) => {
  const reconciled = await openReconciled();
  await booked(reconciled);
  reconciled.api.lists.changeInvoice(await booked(reconciled), fields);
  expect((await verify(reconciled)).text).toMatch(/^payment_mismatch .*\(opened\)$/m);
});

test("an invoice's own amount is compared, too, and an open one's currency", async () => {
  const reconciled = await openReconciled();
  const { inbox, happened } = reconciled;
  const paid = await booked(reconciled);
  await inbox.rows("update invoices set amount_paid = 4201 where id = $1", [paid]);
  const open = aPayment("invoice.finalized", { status: "open", amountPaid: 0, total: 4200 });
  await inbox.deliver(open);
  happened(HOUR, open);
  await inbox.rows("update invoices set currency = 'usd' where status = 'open'");
  expect((await verify(reconciled)).text).toContain("2 differences.");
});

test.each([
  ["uncollectible", "invoice.marked_uncollectible", { status: "uncollectible", amountPaid: 0 }],
  ["free", "invoice.paid", { total: 0, amountPaid: 0 }],
  ["void", "invoice.voided", { status: "void", amountPaid: 0 }],
] as const)("an invoice that is %s on both sides is no difference", async (_, type, facts) => {
  const reconciled = await openReconciled();
  const event = aPayment(type, facts);
  await reconciled.inbox.deliver(event);
  reconciled.happened(HOUR, event);
  expect(await verify(reconciled)).toMatchObject({ status: 0 });
});

test("a part that was paid of an open invoice is no difference", async () => {
  const reconciled = await openReconciled();
  const event = aPayment("invoice.payment_succeeded", {
    status: "open",
    total: 4200,
    amountPaid: 0,
  });
  await reconciled.inbox.deliver(event);
  reconciled.happened(HOUR, event);
  reconciled.api.lists.changeInvoice(String(event.data?.object["id"]), { amount_paid: 1000 });
  expect(await verify(reconciled)).toMatchObject({ status: 0 });
});

test("a contradiction that events opened and a person settled is settled for a comparison, too", async () => {
  const reconciled = await openReconciled();
  const { inbox, api } = reconciled;
  const id = await booked(reconciled);
  await inbox.deliver(aPayment("invoice.payment_succeeded", { id, amountPaid: 4300 }));
  await inbox.rows("update discrepancies set resolved_at = now(), resolution = 'ticket 9'");
  api.lists.changeInvoice(id, { amount_paid: 4300 });
  await inbox.rows("update invoices set updated_at = now() - interval '1 hour'");
  expect((await verify(reconciled)).text).toMatch(/^payment_mismatch .*\(settled\)$/m);
  api.lists.changeInvoice(id, { amount_paid: 9000 });
  expect((await verify(reconciled)).text).toMatch(/^payment_mismatch .*\(opened\)$/m);
});

test("a stream told in the shapes of several API versions agrees with itself", async () => {
  const reconciled = await openReconciled();
  const { inbox, settle } = reconciled;
  const begin = Math.floor(Date.now() / 1_000) - 29 * 86_400;
  const stream = makeStream({ seed: 7, run: "verify", invoices: 40, livemode: false, begin });
  for (const { event } of stream) reconciled.api.lists.addEvent(event);
  await settle();
  const account = { livemode: null };
  const all = expectedBooks(stream, account);
  const receipts = all.receipts.filter(({ outcome }) => outcome === "processed");
  const expected = { ...all, receipts };
  const books = await readBooks((text, values) => query(inbox.databaseUrl, text, values), expected);
  expect(compareBooks(expected, books)).toEqual([]);
  const ran = await verify(reconciled);
  // What contradicts itself at Stripe does so here.
  expect(ran.text).not.toMatch(/^missing|^status/m);
});

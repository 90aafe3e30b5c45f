/** What `npm run verify -- --repair` does, and what it leaves alone. */
import { expect, test } from "vitest";
import { aPayment, HOUR, openReconciled } from "./reconciled.ts";
import { booked, verify, verifyWith } from "./verifying.ts";

test("a payment that was missed is found however old its invoice is", async () => {
  const reconciled = await openReconciled();
  const { inbox, happened } = reconciled;
  await booked(reconciled);
  const open = aPayment("invoice.finalized", { status: "open", amountPaid: 0, total: 4200 });
  const id = String(open.data?.object["id"]);
  await inbox.deliver(open);
  await inbox.rows("update invoices set updated_at = now() - interval '90 days'");
  happened(HOUR, aPayment("invoice.paid", { id }));
  const ran = await verifyWith(reconciled, {}, "--since", "7d", "--repair");
  expect(ran.text).toMatch(new RegExp(`^missing_here  ${id}  .*\\(repaired\\)$`, "m"));
  expect(await inbox.rows("select amount from ledger_entries where invoice_id = $1", [id])).toEqual(
    [{ amount: "4200" }],
  );
});

test("what waits, or needs review, is left to that: nothing is repaired past it", async () => {
  const reconciled = await openReconciled();
  const { inbox, happened } = reconciled;
  await booked(reconciled);
  const unusable = aPayment("invoice.paid", { amountPaid: -1, total: 4200 });
  await inbox.deliver(unusable);
  const id = String(unusable.data?.object["id"]);
  happened(HOUR, aPayment("invoice.paid", { id }));
  const ran = await verify(reconciled, "--repair");
  expect(ran.text).toMatch(new RegExp(`\\(opened; ${unusable.id} needs review\\)$`, "m"));
  expect(await inbox.books()).toMatchObject({ inbox: 2, entries: 1 });
});

test("a repair in vain is not recorded again by the next one", async () => {
  const reconciled = await openReconciled();
  const { inbox, api, happened } = reconciled;
  await booked(reconciled);
  const event = aPayment();
  happened(HOUR, event);
  api.lists.changeInvoice(String(event.data?.object["id"]), { amount_paid: 0.5 });
  const rows = async () => (await inbox.books()).inbox;
  const before = await rows();
  await verify(reconciled, "--repair");
  const once = await rows();
  await verify(reconciled, "--repair");
  expect(await rows()).toBe(once);
  expect(once - before).toBeLessThanOrEqual(1);
});

/** `npm run verify` as it is typed, and invoices for it to compare. */
import type { InvoiceFacts } from "../local/invoice-shapes.ts";
import { type Ran, runCliWith } from "./cli.ts";
import { aPayment, HOUR, type Reconciled } from "./reconciled.ts";

export function verify(reconciled: Reconciled, ...flags: string[]): Promise<Ran> {
  return verifyWith(reconciled, {}, "--since", "2020-01-01", ...flags);
}

export function verifyWith(
  { inbox, api }: Reconciled,
  env: Readonly<Record<string, string>>,
  ...flags: string[]
): Promise<Ran> {
  const given = {
    DATABASE_URL: inbox.databaseUrl,
    STRIPE_API_KEY: "sk_test_made_up",
    STRIPE_API_URL: api.url,
    STRIPE_LIVEMODE: "false",
  };
  return runCliWith({ ...given, ...env }, "verify", ...flags);
}

/** An invoice that is booked here as it is at Stripe. */
export async function booked({ inbox, happened }: Reconciled, facts: Partial<InvoiceFacts> = {}) {
  const event = aPayment("invoice.paid", facts);
  await inbox.deliver(event);
  await inbox.rows("update invoices set updated_at = updated_at - interval '1 hour'");
  happened(HOUR, event);
  return String(event.data?.object["id"]);
}

export async function found({ inbox }: Reconciled) {
  return inbox.rows(`select kind, object_id, resolved_at is null as open, resolution
    from discrepancies order by kind`);
}

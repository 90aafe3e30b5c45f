/** Which types of events an inbox of many events holds, and how many of each. */

export interface Kind {
  readonly endpoint: "billing" | "connect";
  readonly type: string;
  /** Why events of the kind are ignored; null: they are processed. */
  readonly reason: "no_handler" | "livemode" | "account" | "test_id" | null;
  /** Of 10,000 events. */
  readonly share: number;
}

/** Few of many, so that a list of them has far to look. */
export const RARE_TYPE = "charge.dispute.created";

export const KINDS: readonly Kind[] = [
  ...kinds(null, {
    "invoice.created": 1_150,
    "invoice.finalized": 1_100,
    "invoice.updated": 1_500,
    "invoice.paid": 900,
    "invoice.payment_succeeded": 900,
    "invoice.payment_failed": 300,
    "invoice.voided": 80,
    "invoice.marked_uncollectible": 40,
    "invoice.deleted": 30,
  }),
  ...kinds("no_handler", {
    "charge.succeeded": 700,
    "payment_intent.created": 700,
    "payment_intent.succeeded": 700,
    "customer.updated": 500,
    "customer.subscription.updated": 450,
    "payment_method.attached": 300,
    "customer.created": 200,
    "checkout.session.completed": 200,
    "charge.updated": 150,
    "customer.subscription.deleted": 78,
    [RARE_TYPE]: 1,
  }),
  { endpoint: "connect", type: "account.updated", reason: "no_handler", share: 1 },
  ...kinds("livemode", { "invoice.paid": 10 }),
  ...kinds("account", { "invoice.paid": 6 }),
  ...kinds("test_id", { "invoice.paid": 4 }),
];

function kinds(reason: Kind["reason"], shares: Readonly<Record<string, number>>): readonly Kind[] {
  return Object.entries(shares).map(([type, share]) => ({
    endpoint: "billing",
    type,
    reason,
    share,
  }));
}

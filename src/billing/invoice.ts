/**
 * What we read of a Stripe invoice, in the shape of any API version since 2018.
 * Fields that Stripe has removed (`paid`, `charge`, `payment_intent`) are never read.
 */
import * as v from "valibot";
import { PermanentError } from "../inbox/retry.ts";
import {
  INVOICE_EVENTS,
  INVOICE_STATUSES,
  type InvoiceEventType,
  type InvoiceStatus,
} from "./lifecycle.ts";

export interface InvoiceNews {
  readonly id: string;
  /** Null: the event says that something changed, not what. */
  readonly says: InvoiceStatus | null;
  readonly customerId: string | null;
  /** ISO code in lower case. */
  readonly currency: string | null;
  /** Whole minor units that this event books, 0 for an invoice of nothing; null: no payment. */
  readonly payment: number | null;
}

const Text = v.pipe(v.string(), v.minLength(1));
const InvoiceId = v.pipe(
  Text,
  v.check((id) => Array.from(id).length <= 255),
);
const Status = v.nullish(v.picklist(INVOICE_STATUSES));
/** Minor units, as an integer that JSON's readers agree on. */
const Amount = v.pipe(v.number(), v.safeInteger(), v.minValue(0));
const Currency = v.pipe(v.string(), v.regex(/^[a-z]{3}$/i), v.toLowerCase());
const Customer = v.union([
  Text,
  v.pipe(
    v.object({ id: Text }),
    v.transform(({ id }) => id),
  ),
]);

/**
 * @throws PermanentError when the object contradicts the type, or itself: such an event stays
 * wrong however often it is sent.
 */
export function readInvoice(type: InvoiceEventType, object: object): InvoiceNews {
  const invoice: Readonly<Record<string, unknown>> = { ...object };
  const { names, books } = INVOICE_EVENTS[type];
  const says = read(Status, invoice["status"], "invoice_status_unknown") ?? names;
  if (books === "always" && says !== "paid")
    throw new PermanentError("paid_event_of_unpaid_invoice");
  const isPayment = books !== "never" && says === "paid";
  return {
    id: read(InvoiceId, invoice["id"], "invoice_id_unusable"),
    says,
    customerId: v.parse(v.fallback(v.nullable(Customer), null), invoice["customer"]),
    currency: v.parse(v.fallback(v.nullable(Currency), null), invoice["currency"]),
    payment: isPayment ? read(Amount, invoice["amount_paid"], "amount_paid_unusable") : null,
  };
}

function read<Schema extends v.GenericSchema>(
  schema: Schema,
  value: unknown,
  reason: string,
): v.InferOutput<Schema> {
  const result = v.safeParse(schema, value);
  if (!result.success) throw new PermanentError(reason);
  return result.output;
}

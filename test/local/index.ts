/**
 * What tests of your own handlers need, but for the receiver itself: `openTestbed` of
 * `test/worker/testbed.ts`, which only runs in Vitest.
 */
export { aThinNotification, anEvent, anInvoiceEvent, type Fields, freshId } from "./builders.ts";
export type { EventOptions, InvoiceEventType, StripeEvent } from "./events.ts";
export {
  type ApiFault,
  type ApiOptions,
  type FakeStripeApi,
  startStripeApi,
} from "./stripe-api.ts";
export { signatureHeader, type SignedRequest, signedRequest, type Signing } from "./sign.ts";

/** Endpoints for several accounts, modes, secrets and API versions. */
import { invoiceHandlers } from "../../src/billing/handlers.ts";
import type { Endpoints } from "../../src/endpoints.ts";
import { refundHandlers } from "./refunds/handlers.ts";

export const endpoints: Endpoints = {
  billing: {
    secrets: "STRIPE_WEBHOOK_SECRET",
    livemode: true,
    accounts: "own",
    handlers: { ...invoiceHandlers, ...refundHandlers },
  },
  connect: {
    secrets: "STRIPE_CONNECT_WEBHOOK_SECRET",
    livemode: true,
    accounts: "connected",
    handlers: refundHandlers,
  },
  // Recorded, and not booked: test money has no place in the tables of live money.
  sandbox: {
    secrets: "STRIPE_SANDBOX_WEBHOOK_SECRET",
    livemode: false,
    accounts: "own",
    handlers: {},
  },
  // Events of the next API version, to look at before they are booked.
  upgrade: {
    secrets: "STRIPE_UPGRADE_WEBHOOK_SECRET",
    livemode: true,
    accounts: "own",
    handlers: {},
  },
};

/** The tables of `src/endpoints.ts` with refunds in them. */
import { paymentConsequences } from "../../src/billing/consequences.ts";
import { invoiceHandlers } from "../../src/billing/handlers.ts";
import type { Endpoints } from "../../src/endpoints.ts";
import type { ConsequenceTable } from "../../src/outbox/consume.ts";
import { refundConsequences } from "./refunds/consequences.ts";
import { refundHandlers } from "./refunds/handlers.ts";

export const endpoints: Endpoints = {
  billing: {
    secrets: "STRIPE_WEBHOOK_SECRET",
    accounts: "own",
    handlers: { ...invoiceHandlers, ...refundHandlers },
  },
};

export const consequences: ConsequenceTable = { ...paymentConsequences, ...refundConsequences };

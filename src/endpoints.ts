/**
 * The table you edit: which endpoints exist under /webhooks/stripe/, whose signature each of them
 * accepts, and what is done with which event there.
 */
import { invoiceHandlers } from "./billing/handlers.ts";
import type { HandlerTable } from "./inbox/handler.ts";

export interface Endpoint {
  /** Name of the binding that holds the signing secret, or several while one is being rolled. */
  readonly secrets: string;
  /** Events that say otherwise are recorded and ignored. Default: the var STRIPE_LIVEMODE. */
  readonly livemode?: boolean;
  /** Events of your own account, or those of accounts connected to it. */
  readonly accounts: "own" | "connected";
  /** Events of a type that has no handler are recorded and ignored. */
  readonly handlers: HandlerTable;
}

export type Endpoints = Readonly<Record<string, Endpoint>>;

/** The endpoint of `POST /webhooks/stripe`, without a name. */
export const DEFAULT_ENDPOINT = "billing";

export const endpoints: Endpoints = {
  billing: {
    secrets: "STRIPE_WEBHOOK_SECRET",
    accounts: "own",
    handlers: invoiceHandlers,
  },
  connect: {
    secrets: "STRIPE_CONNECT_WEBHOOK_SECRET",
    accounts: "connected",
    handlers: {},
  },
};

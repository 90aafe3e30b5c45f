/**
 * The tables you edit: which endpoints exist under /webhooks/stripe/, whose signature each of them
 * accepts, what is done with which event there; and what follows from which message.
 */
import { paymentConsequences } from "./billing/consequences.ts";
import { invoiceHandlers } from "./billing/handlers.ts";
import type { ReceiveMode, Settings } from "./config.ts";
import type { HandlerTable, ThinHandlerTable } from "./inbox/handler.ts";
import type { EndpointRules } from "./inbox/rules.ts";
import type { ConsequenceTable } from "./outbox/consume.ts";

export interface Endpoint {
  /** Name of the binding that holds the signing secret, or several while one is being rolled. */
  readonly secrets: string;
  /**
   * `sync` answers when the event is processed; `async` when it is stored, and processes it then.
   * Default: the var RECEIVE_MODE.
   */
  readonly mode?: ReceiveMode;
  /** Events that say otherwise are recorded and ignored. Default: the var STRIPE_LIVEMODE. */
  readonly livemode?: boolean;
  /** Events of your own account, or those of accounts connected to it. */
  readonly accounts: "own" | "connected";
  /** Events of a type that has no handler are recorded and ignored. */
  readonly handlers: HandlerTable;
  /**
   * Of thin (v2) notifications, which are stored first, whatever the mode: what a handler asks for is
   * fetched behind the answer. Needs STRIPE_API_KEY.
   */
  readonly thinHandlers?: ThinHandlerTable;
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

/** By the `event_type` that a handler gives its message. */
export const consequences: ConsequenceTable = { ...paymentConsequences };

/** An endpoint's rules, where it says nothing itself by the settings. */
export function rulesOf(
  name: string,
  endpoint: Endpoint,
  settings: Pick<Settings, "livemode">,
): EndpointRules {
  return {
    name,
    livemode: endpoint.livemode ?? settings.livemode,
    accounts: endpoint.accounts,
    handlers: endpoint.handlers,
    ...(endpoint.thinHandlers ? { thinHandlers: endpoint.thinHandlers } : {}),
  };
}

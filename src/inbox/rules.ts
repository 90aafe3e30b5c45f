/**
 * Whose event is it? Pure: an endpoint's rules and an event in, what to do with it out.
 */
import type { VerifiedEvent } from "../stripe/verify.ts";
import {
  findHandler,
  findThinHandler,
  type Handler,
  type HandlerTable,
  type ThinHandler,
  type ThinHandlerTable,
} from "./handler.ts";

/** What the mechanism needs to know of an endpoint. */
export interface EndpointRules {
  readonly name: string;
  /** The only livemode accepted; null accepts both. */
  readonly livemode: boolean | null;
  /** Whose events: our own account's, or those of accounts connected to it. */
  readonly accounts: "own" | "connected";
  readonly handlers: HandlerTable;
  /** Of thin (v2) notifications. */
  readonly thinHandlers?: ThinHandlerTable;
}

export type IgnoredReason = "test_id" | "thin" | "livemode" | "account" | "no_handler";

export type Verdict =
  | { readonly handler: Handler }
  | { readonly thinHandler: ThinHandler }
  | { readonly ignored: IgnoredReason };

/** The ids that Stripe's dashboard gives to test deliveries: one id, whatever the type. */
const FIXED_TEST_ID = /^evt_0{14,}$|_0{14}$/;

/** When several reasons to ignore apply, the first in this order is the one given. */
export function judge(endpoint: EndpointRules, event: VerifiedEvent): Verdict {
  const ignored = reasonToIgnore(endpoint, event);
  if (ignored !== null) return { ignored };
  const thinHandler = event.thin ? thinHandlerOf(endpoint, event.type) : undefined;
  if (thinHandler) return { thinHandler };
  const handler = findHandler(endpoint.handlers, event.type);
  return handler ? { handler } : { ignored: "no_handler" };
}

/** What an event is judged by. */
type Traits = Pick<VerifiedEvent, "id" | "type" | "thin" | "livemode" | "connected">;

/** Whether an endpoint would have something to do, were there such an event. */
export function concerns(endpoint: EndpointRules, traits: Traits): boolean {
  const handled = findHandler(endpoint.handlers, traits.type) !== undefined;
  return handled && reasonToIgnore(endpoint, traits) === null;
}

function thinHandlerOf(endpoint: EndpointRules, type: string): ThinHandler | undefined {
  return findThinHandler(endpoint.thinHandlers ?? {}, type);
}

function reasonToIgnore(endpoint: EndpointRules, event: Traits): IgnoredReason | null {
  if (FIXED_TEST_ID.test(event.id)) return "test_id";
  if (event.thin && !thinHandlerOf(endpoint, event.type)) return "thin";
  if (endpoint.livemode !== null && event.livemode !== endpoint.livemode) return "livemode";
  return event.connected === (endpoint.accounts === "connected") ? null : "account";
}

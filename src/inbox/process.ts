/**
 * One event, one transaction: what a handler is, and how it is asked for its writes.
 * A handler decides; it reads through `tx` and returns what is to be written. The inbox alone
 * executes that, in order, together with COMMIT.
 */
import type { Stripe } from "stripe";
import type { Tx, Write } from "../db/connect.ts";
import type { StripeEvent, VerifiedEvent } from "../stripe/verify.ts";

type Answer = readonly Write[] | void;

/** @throws PermanentError when trying again can never help. */
export type Handler<Event = StripeEvent> = (event: Event, tx: Tx) => Answer | Promise<Answer>;

/** One handler per event type, each typed by that type. */
export type HandlerTable = {
  readonly [Type in Stripe.Event["type"]]?: Handler<StripeEvent<Type>>;
};

/** A handler table as the mechanism looks things up in it. */
export type Handlers = ReadonlyMap<string, Handler>;

export function toHandlers(table: HandlerTable): Handlers {
  const handlers: ReadonlyMap<string, unknown> = new Map(Object.entries(table));
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- A handler is only ever called with events of the type that it stands under.
  return handlers as Handlers;
}

/** @throws whatever the handler throws, and a TypeError when it returns anything but writes. */
export async function askHandler(
  handler: Handler,
  event: VerifiedEvent,
  tx: Tx,
): Promise<readonly Write[]> {
  const writes = (await handler(event.payload, tx)) ?? [];
  if (!Array.isArray(writes) || !writes.every(isWrite)) {
    throw new TypeError(`The handler of ${event.type} returned something other than writes.`);
  }
  return writes;
}

function isWrite(value: unknown): value is Write {
  return typeof value === "object" && value !== null && "getSQL" in value;
}

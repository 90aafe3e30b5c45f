/**
 * What a handler is: it decides, and the inbox writes. It reads through `tx` and returns what is
 * to be written; the inbox alone executes that, in order, together with COMMIT.
 */
import type { Stripe } from "stripe";
import type { Tx, Write } from "../db/connect.ts";
import type {
  FullEvent,
  RelatedObject,
  StripeEvent,
  ThinEvent,
  VerifiedEvent,
} from "../stripe/verify.ts";

type Answer = readonly Write[] | void;

/** @throws PermanentError when trying again can never help. */
export type Handler<Event = StripeEvent> = (event: Event, tx: Tx) => Answer | Promise<Answer>;

/** One handler per event type, each typed by that type. */
export type HandlerTable = {
  readonly [Type in Stripe.Event["type"]]?: Handler<StripeEvent<Type>>;
};

/**
 * A handler of a thin (v2) notification, and what it asks for: that is fetched from Stripe before the
 * transaction in which it is asked, never inside. Null: it was deleted.
 */
export type ThinHandler<Type extends ThinEvent["type"] = ThinEvent["type"]> =
  | {
      /**
       * The object that the notification names, as it was a moment ago: another notification of it may have
       * been processed since, with what is newer. Write it so that nothing goes backwards.
       */
      readonly fetch: "related_object";
      readonly handle: Handling<Type, RelatedObject<Type>>;
    }
  | {
      /** The event behind the notification, with its `data`, as it was then. */
      readonly fetch: "event";
      readonly handle: Handling<Type, FullEvent<Type>>;
    };

type Handling<Type extends ThinEvent["type"], Fetched> = (
  event: ThinEvent<Type>,
  fetched: Fetched | null,
  tx: Tx,
) => Answer | Promise<Answer>;

export type ThinHandlerTable = {
  readonly [Type in ThinEvent["type"]]?: ThinHandler<Type>;
};

/** A handler is still at work when its delivery must be answered. */
export class HandlerTooSlow extends Error {
  override readonly name = "HandlerTooSlow";
}

/** The time was gone before the handler began: waiting took it, and not the handler. */
export class NoTimeLeft extends Error {
  override readonly name = "NoTimeLeft";
}

/** With less, a handler that is quick enough could be called slow. */
const LEAST_HANDLER_MS = 500;

export function findHandler(table: HandlerTable, type: string): Handler | undefined {
  const handlers: Readonly<Record<string, unknown>> = table;
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- Only ever called with events of the type that it stands under.
  return Object.hasOwn(handlers, type) ? (handlers[type] as Handler) : undefined;
}

export function findThinHandler(table: ThinHandlerTable, type: string): ThinHandler | undefined {
  const handlers: Readonly<Record<string, unknown>> = table;
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- As above.
  return Object.hasOwn(handlers, type) ? (handlers[type] as ThinHandler) : undefined;
}

/** As a handler of the notification alone, which has what it asked for. */
export function withFetched({ handle }: ThinHandler, fetched: object | null): Handler {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- What was fetched is what its type names.
  const asked = handle as (event: unknown, fetched: unknown, tx: Tx) => ReturnType<Handler>;
  return (event, tx) => asked(event, fetched, tx);
}

/**
 * @param withinMs how long it may take; what it would have returned later is not written.
 * @throws whatever the handler throws; NoTimeLeft; HandlerTooSlow; TypeError for anything but writes.
 */
export async function askHandler(
  handler: Handler,
  event: VerifiedEvent,
  tx: Tx,
  withinMs: number,
): Promise<readonly Write[]> {
  if (withinMs < LEAST_HANDLER_MS) throw new NoTimeLeft("Nothing is left of the time to work.");
  const answer = handler(event.payload, tx);
  const writes =
    (answer instanceof Promise ? await within(answer, withinMs, event.type) : answer) ?? [];
  if (!Array.isArray(writes) || !writes.every(isWrite)) {
    throw new TypeError(`The handler of ${event.type} returned something other than writes.`);
  }
  return writes;
}

async function within(answer: Promise<Answer>, withinMs: number, type: string): Promise<Answer> {
  const tooSlow = Promise.withResolvers<never>();
  const timer = setTimeout(
    () => tooSlow.reject(new HandlerTooSlow(`The handler of ${type} takes too long.`)),
    withinMs,
  );
  try {
    return await Promise.race([answer, tooSlow.promise]);
  } finally {
    clearTimeout(timer);
  }
}

function isWrite(value: unknown): value is Write {
  return typeof value === "object" && value !== null && "getSQL" in value;
}

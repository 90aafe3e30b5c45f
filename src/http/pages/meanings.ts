/** What a reason means to whoever reads it at night, and what to do. Codes in, words out. */
import { spoken } from "../../operate/wording.ts";
import type { DiscrepancyKind } from "../../reconcile/discrepancies.ts";
import type { IgnoredReason } from "../../inbox/rules.ts";

export interface Meaning {
  readonly means: string;
  readonly todo: string;
}

/** @param reason an error's class, its SQLSTATE, or `PermanentError:` and its code. */
export function meaningOfEventReason(reason: string): Meaning {
  const known = ownOf(EVENT_REASONS, reason);
  if (known) return known;
  const code = /^PermanentError:(.*)$/.exec(reason)?.[1];
  if (code !== undefined) {
    return {
      means: `The handler says that it can never work as it is: ${spoken(code)}.`,
      todo: `Look at the payload. Where the handler is wrong (it throws "${code}"), mend it, deploy, and requeue.`,
    };
  }
  const status = /^Stripe:(\d{3})$/.exec(reason)?.[1];
  if (status !== undefined) {
    return {
      means: `Stripe was asked for what a notification names, and answered ${status}.`,
      todo:
        status === "401" || status === "403"
          ? "Put STRIPE_API_KEY right: may it read such an object? Then requeue what is parked."
          : "Where it is not trouble of Stripe's that passes: find out why there.",
    };
  }
  if (/^[0-9A-Z]{5}$/.test(reason)) {
    return {
      means: `Postgres refused a statement of the handler (SQLSTATE ${reason}).`,
      todo: "Mend the handler or the schema, deploy, and requeue.",
    };
  }
  return {
    means: "The handler threw an error of this class.",
    todo: "The log lines of these events have it, too. Mend the handler, deploy, and requeue.",
  };
}

const EVENT_REASONS: Readonly<Record<string, Meaning>> = {
  Crashed: {
    means: "Its last allowed attempt left no record, as when it ended the Worker.",
    todo: "Look for what of it is out of the ordinary: its size, its nesting. Then requeue one.",
  },
  HandlerTooSlow: {
    means: "The handler took longer than it may.",
    todo: "Is a lock held, an index missing? Mend it, and requeue.",
  },
  "PermanentError:endpoint_unknown": {
    means: "Its endpoint is not in src/endpoints.ts any more.",
    todo: "Bring the endpoint back, or leave them: they stay on record.",
  },
  NoApiKey: {
    means: "A notification's handler asks Stripe for something, and there is no STRIPE_API_KEY.",
    todo: "npx wrangler secret put STRIPE_API_KEY: then it is processed by itself.",
  },
  InvalidSetting: {
    means: "STRIPE_API_URL is no address of an API.",
    todo: "Put it right, or take it out: then it is processed by itself.",
  },
  WrongMode: {
    means: "STRIPE_API_KEY is of Stripe's other mode than the notification.",
    todo: "Put in a key of its mode: then it is processed by itself.",
  },
  StripeConnectionError: {
    means: "Stripe could not be reached, or took too long.",
    todo: "It is tried again by itself.",
  },
  UnknownEvent: {
    means: "Stripe does not know the notification by our API key: it is of another account.",
    todo: "Put in STRIPE_API_KEY of the account that the endpoint is of, and requeue.",
  },
  UnexpectedAnswer: {
    means: "Stripe answered with something else than what the notification names.",
    todo: "Look at the payload, and at Stripe; then requeue.",
  },
  UnusableNotification: {
    means: "What the notification names is no place at Stripe's API.",
    todo: "Look at the payload: did Stripe change its shape?",
  },
  "57014": {
    means: "A statement of the handler took too long (SQLSTATE 57014).",
    todo: "Is a lock held, an index missing? Mend it, and requeue.",
  },
};

export const IGNORED_MEANINGS: Readonly<Record<IgnoredReason, Meaning>> = {
  no_handler: {
    means: "No handler for the type at its endpoint.",
    todo: "As it should be, unless a handler was added since then: then requeue.",
  },
  livemode: {
    means: "Of Stripe's other mode than the endpoint takes.",
    todo: "Is STRIPE_LIVEMODE right? If not: put it right, deploy, and requeue.",
  },
  account: {
    means: "Of a connected account at an endpoint for one's own, or the other way round.",
    todo: "Is `accounts` of the endpoint right? If not: put it right, deploy, and requeue.",
  },
  test_id: {
    means: "A test delivery from Stripe's dashboard, with the id that all of them have.",
    todo: "Nothing.",
  },
  thin: {
    means: "A thin (v2) notification, which has no handler.",
    todo: "As it should be, unless one was added since then, in `thinHandlers`: then requeue.",
  },
};

/** @param reason what a message could not be sent with, or its call failed with. */
export function meaningOfMessageReason(reason: string): Meaning {
  const known = ownOf(MESSAGE_REASONS, reason);
  if (known) return known;
  const status = /^Stripe:(\d{3})$/.exec(reason)?.[1];
  if (status !== undefined) return meaningOfStatus(status);
  return {
    means: "It could not be sent, or its call failed, with an error of this class.",
    todo: "The log lines of ticks and of the queue have it, too. Mend it, and have them sent again.",
  };
}

/** What Stripe answered to the last call, as `stripe/api.ts` sorts it. */
function meaningOfStatus(status: string): Meaning {
  if (status === "401" || status === "403") {
    return {
      means: `Stripe refused our API key (status ${status}).`,
      todo: "Put STRIPE_API_KEY right, and have them sent again.",
    };
  }
  if (status === "429") {
    return { means: "Stripe had too many calls (status 429).", todo: "Have them sent again." };
  }
  if (status === "409" || status.startsWith("5")) {
    return {
      means: `Stripe answered ${status}: whether the call happened is not known.`,
      todo: "Have them sent again: with the same key, nothing happens twice while Stripe knows it.",
    };
  }
  return {
    means: `Stripe refused the call (status ${status}).`,
    todo: "Find out why at Stripe; mend it, and have them sent again.",
  };
}

const MESSAGE_REASONS: Readonly<Record<string, Meaning>> = {
  Uncertain: {
    means: "Nobody knows whether the call happened, and Stripe has forgotten its key.",
    todo: "Look at Stripe first. Only if it did not happen, have it sent again.",
  },
  Undelivered: {
    means: "The queue gave up on it.",
    todo: "Have it sent again; what may have happened is not repeated unless Stripe knows its key.",
  },
  Unreadable: {
    means: "This version of the Worker does not know the kind of its message.",
    todo: "Deploy one that does, and have it sent again.",
  },
  NoApiKey: {
    means: "At last, there was no STRIPE_API_KEY to make the call with.",
    todo: "npx wrangler secret put STRIPE_API_KEY, and have them sent again.",
  },
  InvalidSetting: {
    means: "At last, STRIPE_API_URL was no address of an API to call.",
    todo: "Put it right, or take it out, and have them sent again.",
  },
  MessageTooLarge: {
    means: "It is larger than a queue takes.",
    todo: "To send it again does not help: make smaller what is written to the outbox.",
  },
  Crashed: {
    means: "The last allowed attempt to send it left no record.",
    todo: "Have it sent again.",
  },
};

const DISCREPANCY_MEANINGS: Readonly<Record<DiscrepancyKind, Meaning>> = {
  paid_after_void: {
    means: "A payment came for an invoice that is void here. It was not booked.",
    todo: "Give the money back, or account for it elsewhere.",
  },
  void_after_paid: {
    means: "An invoice that is paid here was made void. Its payment stays booked.",
    todo: "Was the money given back? Settle it in the accounts.",
  },
  payment_mismatch: {
    means: "What was paid for one invoice is told with two amounts, or two currencies.",
    todo: "What is booked here stays as it is. Find out at Stripe which is right.",
  },
  missing_here: {
    means: "Known at Stripe and not here, or paid there and not booked.",
    todo: "npm run verify -- --repair has it done, unless an event of it waits or needs review.",
  },
  missing_at_stripe: {
    means: "Known here, and unknown to the API key at Stripe.",
    todo: "Is it the right account and mode? If so, it was deleted there.",
  },
  status_differs: {
    means: "The invoice has another status at Stripe than here.",
    todo: "npm run verify -- --repair does it, if that leads on and no event of it waits or needs review.",
  },
};

/** @returns null for a reason that none is ignored for. */
export function meaningOfIgnored(reason: string): Meaning | null {
  return ownOf(IGNORED_MEANINGS, reason) ?? null;
}

export function meaningOfDiscrepancy(kind: string): Meaning {
  return ownOf(DISCREPANCY_MEANINGS, kind) ?? { means: "", todo: "" };
}

/** A reason may be called `constructor`. */
function ownOf(meanings: Readonly<Record<string, Meaning>>, reason: string): Meaning | undefined {
  return Object.hasOwn(meanings, reason) ? meanings[reason] : undefined;
}

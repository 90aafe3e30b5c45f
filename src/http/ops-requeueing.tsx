/** Requeueing events, and sending messages again, from the pages. */
import { MOST_COUNTED } from "../db/rows.ts";
import { showRequeueable } from "../inbox/review.ts";
import type { Selection } from "../inbox/selection.ts";
import { requeueEvents, requeueMessages } from "../operate/actions.ts";
import { type MessageSelection, showResendable } from "../outbox/review.ts";
import type { OrderForm, Whereto } from "./ops-forms.tsx";
import * as orders from "./ops-orders.ts";
import { withoutEmpty } from "./page-answer.tsx";
import { writeShown, writeShownMessages } from "./ops-query.ts";
import { TIMEOUTS, together } from "./ops-work.ts";
import { Confirm, Many } from "./pages/confirm.tsx";
import { hrefOf } from "./pages/links.ts";
import { meaningOfEventReason, meaningOfMessageReason } from "./pages/meanings.ts";
import { counted } from "../operate/wording.ts";
import { Id } from "./pages/parts.tsx";

export const requeueing: OrderForm = {
  path: "/events/requeue",
  title: "Requeue events",
  ask: async (db, fields, tried) => {
    const selection = orders.readEventSelection(fields);
    const { events, shown } = await showRequeueable(db, selection, MOST_COUNTED, TIMEOUTS);
    const { count } = events;
    const back = eventsBack(selection);
    const body = (
      <Confirm
        action="/ops/events/requeue"
        fields={{ ...fields, ...(shown && { shown: writeShown(shown) }) }}
        count={count}
        question={
          <>
            <p>
              Process again: <EventsChosen selection={selection} />
            </p>
            <Many {...events} what="event" />
          </>
        }
        then={
          <p>
            They are due at once, with no attempts; the next tick takes them, unless processing is
            paused. What was booked already is not booked again.
            {"ignoredReason" in selection &&
              " The endpoint's rules are applied again: what they still exclude is ignored again."}
          </p>
        }
        button={`Requeue ${counted(count, "event")}`}
        why={{ name: "why", label: "Why?" }}
        back={hrefOf(back.path, back.query)}
        {...tried}
      />
    );
    return { title: "Requeue events", body };
  },
  act: async (c, form) => {
    const { selection, count, why } = orders.readEventRequeue(withoutEmpty(form));
    const done = await together(c, count, why, (db, most, by, timeouts) =>
      requeueEvents(db, selection, most, by, timeouts),
    );
    return { done, why, back: eventsBack(selection) };
  },
};

export const resending: OrderForm = {
  path: "/messages/requeue",
  title: "Send messages again",
  ask: async (db, fields, tried) => {
    const selection = orders.readMessageSelection(fields);
    const { messages, shown } = await showResendable(db, selection, MOST_COUNTED, TIMEOUTS);
    const { count } = messages;
    const body = (
      <Confirm
        action="/ops/messages/requeue"
        fields={{ ...fields, ...(shown && { shown: writeShownMessages(shown) }) }}
        count={count}
        question={
          <>
            <p>
              Send again: <MessagesChosen selection={selection} />
            </p>
            <Many {...messages} what="message" />
          </>
        }
        then={
          <p>
            They leave with the next ticks, unless processing is paused or no queue is bound. A call
            that is known to have succeeded is not made again. One that may have happened is
            repeated under its old key, which does nothing twice; when that is too old, the message
            comes back to review as Uncertain. One that is Uncertain now is made anew, whatever
            happened before: look at Stripe first.
          </p>
        }
        button={`Send ${counted(count, "message")} again`}
        why={{ name: "why", label: "Why?" }}
        back="/ops/outbox"
        {...tried}
      />
    );
    return { title: "Send messages again", body };
  },
  act: async (c, form) => {
    const { selection, count, why } = orders.readMessageRequeue(withoutEmpty(form));
    const done = await together(c, count, why, (db, most, by, timeouts) =>
      requeueMessages(db, selection, most, by, timeouts),
    );
    return { done, why, back: { path: "/ops/outbox", query: {} } };
  },
};

function eventsBack(selection: Selection): Whereto {
  if ("reason" in selection) return { path: "/ops/review", query: {} };
  if ("ignoredReason" in selection) return { path: "/ops/ignored", query: {} };
  const { eventId, endpoint } = selection;
  return endpoint === undefined
    ? { path: "/ops/events", query: { event_id: eventId } }
    : { path: "/ops/event", query: { endpoint, event_id: eventId } };
}

function EventsChosen({ selection }: { selection: Selection }) {
  if ("eventId" in selection) {
    return (
      <>
        event <Id id={selection.eventId} />
        {selection.endpoint !== undefined && ` at ${selection.endpoint}`}
      </>
    );
  }
  if ("ignoredReason" in selection) {
    return (
      <>
        events that were ignored for <Id id={selection.ignoredReason} />
      </>
    );
  }
  return (
    <>
      events that are parked with <Id id={selection.reason} />.{" "}
      {meaningOfEventReason(selection.reason).todo}
    </>
  );
}

function MessagesChosen({ selection }: { selection: MessageSelection }) {
  if ("messageId" in selection) return <>message {selection.messageId}</>;
  if ("leftHoursAgo" in selection) {
    return <>messages that left over {selection.leftHoursAgo} hours ago and are not done</>;
  }
  return (
    <>
      messages with <Id id={selection.reason} />. {meaningOfMessageReason(selection.reason).todo}
    </>
  );
}

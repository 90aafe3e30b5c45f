/** /ops/event: everything that is known of one event. */
import type { Trace } from "../../billing/trace.ts";
import type { Inspected, Payload } from "../../operate/inspection.ts";
import { ACTION_COLUMNS } from "./actions.tsx";
import { StateOf } from "./events.tsx";
import { hrefOf } from "./links.ts";
import { type Meaning, meaningOfEventReason, meaningOfIgnored } from "./meanings.ts";
import { number, spoken } from "../../operate/wording.ts";
import { AnyEventLink, Facts, Id, Nothing, ObjectLink, Table, Time } from "./parts.tsx";

export type InspectedEvent = Inspected<Trace>;

export function Event({ inspected }: { inspected: InspectedEvent }) {
  const { event, sweptAt, actions, trace, payload } = inspected;
  const { endpoint, eventId } = event;
  const meaning = meaningOf(inspected);
  const isRequeueable =
    (event.state === "needs_review" || event.state === "ignored") && payload !== null;
  return (
    <>
      <p>
        <StateOf event={event} />
      </p>
      {meaning && (
        <p>
          {meaning.means}{" "}
          {payload === null ? "Its payload was purged: it cannot be requeued." : meaning.todo}
        </p>
      )}
      {isRequeueable && (
        <p>
          <a href={hrefOf("/ops/events/requeue", { event_id: eventId, endpoint })}>
            Requeue this event…
          </a>
        </p>
      )}
      <Facts
        facts={[
          ["Event", <Id id={eventId} />],
          ["Type", event.type],
          ["Endpoint", endpoint],
          ["About", <ObjectLink id={event.objectId} />],
          ["Received", <Time at={event.receivedAt} />],
          ...(sweptAt ? ([["Not delivered; swept in", <Time at={sweptAt} />]] as const) : []),
          ...(event.processedAt ? ([["Settled", <Time at={event.processedAt} />]] as const) : []),
          ...(event.parkedAt ? ([["Parked", <Time at={event.parkedAt} />]] as const) : []),
          ...(event.availableAt
            ? ([["Due, or leased until", <Time at={event.availableAt} />]] as const)
            : []),
          ["Attempts", number(event.attempts)],
          ["Duplicates", number(event.duplicates)],
          ["Changes of the row (fence)", number(event.fence)],
        ]}
      />
      <Business trace={trace} />
      <h2>What people did with it</h2>
      {actions.length === 0 ? (
        <Nothing>
          Nothing by its id. What was done by a reason is among all{" "}
          <a href="/ops/actions">actions</a>.
        </Nothing>
      ) : (
        <Table caption="Actions" items={actions} columns={ACTION_COLUMNS} />
      )}
      <h2>What Stripe sent</h2>
      <PayloadOf payload={payload} inspected={inspected} />
    </>
  );
}

function meaningOf({ event: { state, reason } }: InspectedEvent): Meaning | null {
  if (reason === null) return null;
  if (state === "waiting") return TRIED_AGAIN;
  return state === "ignored" ? meaningOfIgnored(reason) : meaningOfEventReason(reason);
}

const TRIED_AGAIN: Meaning = {
  means: "The last attempt ended with this.",
  todo: "It is tried again by itself when it is due.",
};

function Business({ trace }: { trace: Trace }) {
  const { invoice, ledgerEntries, messages, discrepancies } = trace;
  return (
    <>
      <h2>What came of it</h2>
      {invoice ? (
        <Facts
          facts={[
            ["Invoice", <ObjectLink id={invoice.id} />],
            ["Status", invoice.status],
            ["Customer", <CustomerLink id={invoice.customerId} />],
            ["Paid, in minor units", money(invoice.amountPaid, invoice.currency)],
            ["First paid", <Time at={invoice.paidAt} />],
            ["Last changed", <Time at={invoice.updatedAt} />],
          ]}
        />
      ) : (
        <Nothing>There is no invoice of it here.</Nothing>
      )}
      {ledgerEntries.length > 0 && (
        <Table
          caption="Ledger, amounts in minor units"
          items={ledgerEntries}
          columns={[
            { title: "Kind", cell: ({ kind }) => kind },
            { title: "Amount", number: true, cell: (entry) => money(entry.amount, entry.currency) },
            { title: "Booked by", cell: ({ eventId }) => <AnyEventLink id={eventId} /> },
          ]}
        />
      )}
      {messages.length > 0 && (
        <Table
          caption="Messages, and the calls made of them"
          items={messages}
          columns={[
            { title: "Message", cell: ({ id, type }) => `${id} ${type}` },
            { title: "Of event", cell: ({ eventId }) => <AnyEventLink id={eventId} /> },
            { title: "Written", cell: ({ createdAt }) => <Time at={createdAt} /> },
            { title: "Left", cell: ({ publishedAt }) => <Time at={publishedAt} age={false} /> },
            { title: "Done", cell: ({ doneAt }) => <Time at={doneAt} age={false} /> },
            { title: "Last error", cell: ({ lastError }) => lastError ?? "none" },
            { title: "Calls", cell: ({ calls }) => <Calls calls={calls} /> },
          ]}
        />
      )}
      {discrepancies.length > 0 && (
        <Table
          caption="Discrepancies"
          items={discrepancies}
          columns={[
            {
              title: "Kind",
              cell: ({ id, kind }) => (
                <a href={hrefOf("/ops/discrepancies/resolve", { id })}>{spoken(kind)}</a>
              ),
            },
            { title: "Found", cell: ({ foundAt }) => <Time at={foundAt} /> },
            { title: "Resolved", cell: ({ resolvedAt }) => <Time at={resolvedAt} /> },
            { title: "Note", cell: ({ resolution }) => resolution ?? "" },
          ]}
        />
      )}
    </>
  );
}

function money(amount: number, currency: string | null): string {
  return `${number(amount)} ${currency ?? "(no currency)"}`;
}

function CustomerLink({ id }: { id: string | null }) {
  if (id === null) return <Id id={id} />;
  // A longer one is found by no filter.
  if (Array.from(id).length > 255) return <Id id={id} />;
  return (
    <a class="id" href={hrefOf("/ops/events", { customer_id: id })}>
      {id}
    </a>
  );
}

function Calls({ calls }: { calls: unknown }) {
  if (!Array.isArray(calls) || calls.length === 0) return <span class="faint">none</span>;
  return (
    <details>
      <summary>{calls.length === 1 ? "1 call" : `${calls.length} calls`}</summary>
      <pre tabindex={0}>{JSON.stringify(calls, null, 2)}</pre>
    </details>
  );
}

function PayloadOf({
  payload,
  inspected: { event },
}: {
  payload: Payload | null;
  inspected: InspectedEvent;
}) {
  if (payload === null) {
    return <Nothing>It was purged, as all payloads are some time after they are settled.</Nothing>;
  }
  const { endpoint, eventId, payloadAltered } = event;
  const whole = hrefOf("/ops/event/payload", { endpoint, event_id: eventId });
  return (
    <>
      {payloadAltered && (
        <p>Something in it could not be stored to the letter; it is replaced by U+FFFD, or text.</p>
      )}
      <details>
        <summary>
          Show the payload ({number(payload.bytes)} bytes
          {payload.whole ? "" : ", the beginning"})
        </summary>
        <pre tabindex={0} role="region" aria-label="Payload">
          {payload.text}
        </pre>
      </details>
      <p>
        {payload.whole ? "" : "It is long: only its beginning is shown here. "}
        <a href={whole}>Download it whole</a>
      </p>
    </>
  );
}

export function EventMissing({ endpoint, eventId }: { endpoint: string; eventId: string }) {
  return (
    <p>
      Endpoint {endpoint || "(none)"} has no event <Id id={eventId || "(none)"} />. It may be known{" "}
      <a href={hrefOf("/ops/events", { event_id: eventId })}>at another endpoint</a>; keys are
      forgotten some months after they are settled.
    </p>
  );
}

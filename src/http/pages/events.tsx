/** /ops/events: whatever is looked for, the filter in the URL, a page at a time. */
import type { EventPage, ListedEvent } from "../../inbox/listing.ts";
import { counted, number, spoken } from "../../operate/wording.ts";
import {
  type Column,
  EventLink,
  Id,
  Note,
  Nothing,
  ObjectLink,
  Pages,
  StandingWord,
  Table,
  Time,
} from "./parts.tsx";
import type { Query } from "./links.ts";
import type { EventState } from "../../inbox/listing-paths.ts";
import type { Standing } from "../../operate/standings.ts";

/** How an event stands by its state. */
export const STATE_STANDINGS = {
  processed: "well",
  ignored: "off",
  waiting: "look",
  needs_review: "trouble",
} as const satisfies Record<EventState, Standing>;

const STATES = ["waiting", "needs_review", "ignored", "processed"] as const;

interface EventsProps {
  readonly query: Query;
  /** Where the page ended, as it travels in a URL. */
  readonly next: string | null;
  readonly endpoints: readonly string[];
  /** What is wrong with the filter, or the events that it finds. */
  readonly found: EventPage | { readonly problem: string };
}

export function Events({ query, next, endpoints, found }: EventsProps) {
  return (
    <>
      <Filters query={query} endpoints={endpoints} />
      {"problem" in found ? (
        <Note standing="trouble">{found.problem}</Note>
      ) : (
        <Found query={query} next={next} found={found} />
      )}
    </>
  );
}

function Found({ query, next, found }: { query: Query; next: string | null; found: EventPage }) {
  const { events } = found;
  return (
    <>
      {events.length > 0 ? (
        <Table
          caption={`${counted(events.length, "event")}${next === null ? "" : " on this page"}, the ${query["order"] ?? "newest"} first`}
          items={events}
          columns={EVENT_COLUMNS}
        />
      ) : (
        <Nothing>
          {found.next
            ? `None found ${query["order"] === "oldest" ? "up" : "down"} to ${found.next.receivedAt.slice(0, 19).replace("T", " ")} UTC; there may be some further on.`
            : "No event is like that."}
        </Nothing>
      )}
      <Pages path="/ops/events" query={query} next={next} />
    </>
  );
}

const EVENT_COLUMNS: readonly Column<ListedEvent>[] = [
  {
    title: "State",
    cell: ({ state, reason }) => (
      <>
        <StandingWord standing={STATE_STANDINGS[state]} word={spoken(state)} />
        {reason !== null && <div>{reason}</div>}
      </>
    ),
  },
  { title: "Event", cell: (event) => <EventLink {...event} /> },
  { title: "Type", cell: ({ type }) => type },
  { title: "About", cell: ({ objectId }) => <ObjectLink id={objectId} /> },
  { title: "Endpoint", cell: ({ endpoint }) => endpoint },
  { title: "Received", cell: ({ receivedAt }) => <Time at={receivedAt} /> },
  { title: "Attempts", number: true, cell: ({ attempts }) => number(attempts) },
];

const TEXT_FILTERS = [
  { name: "reason", label: "Reason (of a state)", hint: "TypeError" },
  { name: "type", label: "Type", hint: "invoice.paid" },
  { name: "event_id", label: "Event id", hint: "evt_…" },
  { name: "object_id", label: "Invoice, or other object", hint: "in_…" },
  { name: "customer_id", label: "Customer", hint: "cus_…" },
  { name: "since", label: "Received since (UTC)", hint: "2026-11-29T08:00:00Z" },
  { name: "until", label: "Received before (UTC)", hint: "2026-11-30" },
] as const;

function Filters({ query, endpoints }: { query: Query; endpoints: readonly string[] }) {
  return (
    <form
      method="get"
      action="/ops/events"
      class="filters"
      aria-label="Filter events"
      role="search"
    >
      <label>
        State
        <Select name="state" options={STATES} chosen={query["state"]} any="Any" />
      </label>
      {TEXT_FILTERS.map(({ name, label, hint }) => (
        <label>
          {label}
          <input
            name={name}
            value={query[name] ?? ""}
            placeholder={hint}
            autocomplete="off"
            spellcheck={false}
          />
        </label>
      ))}
      <label>
        Endpoint
        <Select name="endpoint" options={endpoints} chosen={query["endpoint"]} any="Any" />
      </label>
      <label>
        Order
        <Select name="order" options={["newest", "oldest"]} chosen={query["order"] ?? "newest"} />
      </label>
      {query["limit"] !== undefined && <input type="hidden" name="limit" value={query["limit"]} />}
      <div>
        <button type="submit">Find</button> <a href="/ops/events">All events</a>
      </div>
    </form>
  );
}

/** What was chosen and is no option stays one: the list that one sees is the one of the URL. */
function Select({
  name,
  options,
  chosen,
  any,
}: {
  name: string;
  options: readonly string[];
  chosen: string | undefined;
  any?: string;
}) {
  const unknown = chosen !== undefined && !options.includes(chosen) ? [chosen] : [];
  return (
    <select name={name}>
      {any !== undefined && <option value="">{any}</option>}
      {[...unknown, ...options].map((option) => (
        <option value={option} selected={option === chosen}>
          {spoken(option)}
        </option>
      ))}
    </select>
  );
}

/** The head of one event. */
export function StateOf({ event: { state, reason } }: { event: ListedEvent }) {
  return (
    <>
      <StandingWord standing={STATE_STANDINGS[state]} word={spoken(state)} />
      {reason !== null && (
        <>
          : <Id id={reason} />
        </>
      )}
    </>
  );
}

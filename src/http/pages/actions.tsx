/** /ops/actions: what people did, when and why. /ops/gaps: what sweeps found missing. */
import type { ListedGap, Page, RecordedAction } from "../../operate/records.ts";
import { number, spoken } from "../../operate/wording.ts";
import { type Column, EventLink, Nothing, Pages, Table, Time } from "./parts.tsx";
import type { Query } from "./links.ts";

export const ACTION_COLUMNS: readonly Column<RecordedAction>[] = [
  { title: "When", cell: ({ at }) => <Time at={at} /> },
  { title: "Who", cell: ({ operator, via }) => `${operator}, by ${VIA[via] ?? via}` },
  { title: "What", cell: ({ action, subject }) => `${spoken(action)}: ${subject}` },
  { title: "Changed", number: true, cell: ({ affected }) => number(affected) },
  { title: "Why", cell: ({ why }) => why },
];

const VIA: Readonly<Record<string, string>> = {
  session: "these pages",
  token: "the API",
  cli: "the command line",
};

interface ListProps<T> {
  readonly query: Query;
  readonly found: Page<T>;
  readonly next: string | null;
}

export function Actions({ query, found, next }: ListProps<RecordedAction>) {
  return (
    <>
      <p>Each was written in one transaction with what it changed.</p>
      {found.items.length === 0 ? (
        <Nothing>Nobody has done anything yet.</Nothing>
      ) : (
        <Table caption="The newest first" items={found.items} columns={ACTION_COLUMNS} />
      )}
      <Pages path="/ops/actions" query={query} next={next} />
    </>
  );
}

export function Gaps({ query, found, next }: ListProps<ListedGap>) {
  return (
    <>
      <p>
        Events that Stripe had and an endpoint had not, when a sweep looked; each was stored then. A
        few are Stripe's own late retries. Many of one endpoint: look at it in Stripe's dashboard.
      </p>
      {found.items.length === 0 ? (
        <Nothing>No sweep has found anything missing.</Nothing>
      ) : (
        <Table
          caption="The newest first"
          items={found.items}
          columns={[
            { title: "Event", cell: (gap) => <EventLink {...gap} /> },
            { title: "Type", cell: ({ type }) => type },
            { title: "Endpoint", cell: ({ endpoint }) => endpoint },
            { title: "Created at Stripe", cell: ({ createdAt }) => <Time at={createdAt} /> },
            { title: "Found missing", cell: ({ foundAt }) => <Time at={foundAt} /> },
          ]}
        />
      )}
      <Pages path="/ops/gaps" query={query} next={next} />
    </>
  );
}

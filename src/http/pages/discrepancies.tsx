/** /ops/discrepancies: two facts contradict each other, and a person settles it. */
import type { ListedDiscrepancy, Page } from "../../operate/records.ts";
import { brief } from "../../operate/wording.ts";
import type { Reconciliation } from "../../reconcile/stats.ts";
import type { Query } from "./links.ts";
import { hrefOf } from "./links.ts";
import { meaningOfDiscrepancy } from "./meanings.ts";
import { counted, number, spoken } from "../../operate/wording.ts";
import { Away, Id, Nothing, ObjectLink, Pages, Table, Time, Reason } from "./parts.tsx";

interface DiscrepanciesProps {
  readonly open: Reconciliation["openDiscrepancies"];
  readonly query: Query;
  readonly found: Page<ListedDiscrepancy>;
  readonly next: string | null;
}

export function Discrepancies({ open, query, found, next }: DiscrepanciesProps) {
  const { kind } = query;
  const which = query["open"] === "false" ? "resolved" : "open";
  return (
    <>
      {open.length === 0 ? (
        <Nothing>No discrepancy is open.</Nothing>
      ) : (
        <Table
          caption="Open discrepancies, by kind"
          items={open}
          columns={[
            {
              title: "Kind",
              cell: (group) => (
                <Reason reason={group.kind} meaning={meaningOfDiscrepancy(group.kind)} />
              ),
            },
            { title: "Objects", number: true, cell: ({ objects }) => number(objects) },
            { title: "Oldest", cell: ({ oldestSeconds }) => `${brief(oldestSeconds)} ago` },
            {
              title: "Do",
              cell: (group) => (
                <>
                  <a href={hrefOf("/ops/discrepancies", { open: "true", kind: group.kind })}>
                    See them<Away>{spoken(group.kind)}</Away>
                  </a>
                  {", or "}
                  <a href={hrefOf("/ops/discrepancies/resolve", { kind: group.kind })}>
                    resolve all…<Away>{spoken(group.kind)}</Away>
                  </a>
                </>
              ),
            },
          ]}
        />
      )}
      <h2>{kind === undefined ? "All kinds" : spoken(kind)}</h2>
      <ul class="choices" aria-label="Which discrepancies">
        {(["open", "resolved"] as const).map((one) => (
          <li>
            <a
              href={hrefOf("/ops/discrepancies", { open: String(one === "open"), kind })}
              aria-current={one === which ? "true" : undefined}
            >
              {one === "open" ? "Open" : "Resolved"}
            </a>
          </li>
        ))}
        {kind !== undefined && (
          <li>
            <a href="/ops/discrepancies">Of all kinds</a>
          </li>
        )}
      </ul>
      {found.items.length === 0 ? (
        <Nothing>There is none.</Nothing>
      ) : (
        <Table<ListedDiscrepancy>
          caption={`${counted(found.items.length, "discrepancy")}${next === null ? "" : " on this page"}, the ${query["order"] ?? "newest"} first`}
          items={found.items}
          columns={[
            { title: "Kind", cell: (one) => spoken(one.kind) },
            { title: "About", cell: ({ objectId }) => <ObjectLink id={objectId} /> },
            { title: "What", cell: ({ detail }) => <Detail detail={detail} /> },
            { title: "Found", cell: ({ foundAt }) => <Time at={foundAt} /> },
            {
              title: which === "open" ? "Do" : "Resolved",
              cell: (one) => <Resolution discrepancy={one} />,
            },
          ]}
        />
      )}
      <Pages path="/ops/discrepancies" query={query} next={next} />
    </>
  );
}

function Resolution({ discrepancy }: { discrepancy: ListedDiscrepancy }) {
  const { id, resolvedAt, resolution } = discrepancy;
  if (resolvedAt === null) {
    return <a href={hrefOf("/ops/discrepancies/resolve", { id })}>Resolve…</a>;
  }
  return (
    <>
      <Time at={resolvedAt} />
      <div>{resolution}</div>
    </>
  );
}

/** What contradicts what: ids, amounts and codes. */
export function Detail({ detail }: { detail: unknown }) {
  const facts =
    typeof detail === "object" && detail !== null && !Array.isArray(detail)
      ? Object.entries(detail)
      : [];
  if (facts.length === 0) return <span class="faint">nothing more</span>;
  return (
    <ul>
      {facts.map(([name, value]) => (
        <li>
          {spoken(name)}: <Id id={typeof value === "string" ? value : JSON.stringify(value)} />
        </li>
      ))}
    </ul>
  );
}

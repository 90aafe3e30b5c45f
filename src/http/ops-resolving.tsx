/** Resolving discrepancies from the pages: one, or all of a kind. */
import { MOST_COUNTED } from "../db/rows.ts";
import type { Connection } from "../db/connect.ts";
import { resolveDiscrepancies, resolveDiscrepancy } from "../operate/actions.ts";
import { type ListedDiscrepancy, readDiscrepancy } from "../operate/records.ts";
import { countOpen, type DiscrepancyKind } from "../reconcile/discrepancies.ts";
import { BadRequest } from "./ops-fields.ts";
import type { OrderForm, Tried } from "./ops-forms.tsx";
import * as orders from "./ops-orders.ts";
import type { View } from "./page-answer.tsx";
import { actor, onDatabase, TIMEOUTS, together } from "./ops-work.ts";
import { Confirm, Many } from "./pages/confirm.tsx";
import { Detail } from "./pages/discrepancies.tsx";
import { meaningOfDiscrepancy } from "./pages/meanings.ts";
import { counted, spoken } from "../operate/wording.ts";
import { AnyEventLink, Facts, Note, ObjectLink, Time } from "./pages/parts.tsx";
import { NotHere } from "./pages/trouble.tsx";

const TITLE = "Resolve discrepancies";
const LIST = "/ops/discrepancies";
const NOTE = { name: "note", label: "How was it settled?" } as const;

export const resolving: OrderForm = {
  path: "/discrepancies/resolve",
  title: TITLE,
  ask: (db, { id, kind }, tried) =>
    id === undefined ? askKind(db, orders.readKind({ kind }), tried) : askOne(db, id, tried),
  act: async (c, { id, count = "", ...form }) => {
    const back = { path: LIST, query: {} };
    if (id === undefined) {
      const { note, count: agreed, ...seen } = orders.readKindResolution({ ...form, count });
      const done = await together(c, agreed, note, (db, most, by, timeouts) =>
        resolveDiscrepancies(db, seen, most, by, timeouts),
      );
      return { done, why: note, back };
    }
    const { note, foundAt } = orders.readResolution(form);
    const by = actor(c, note);
    const which = { id: orders.readId(id), foundAt };
    const done = await onDatabase(c, (db) => resolveDiscrepancy(db, which, by, TIMEOUTS));
    switch (done) {
      case "found again":
        throw new BadRequest("It was found again since you saw it: look at it anew, below.");
      case "unknown":
        throw new BadRequest("There is no such discrepancy.");
      default:
        return { done, why: note, back };
    }
  },
};

async function askOne(db: Connection, id: string, tried: Tried): Promise<View> {
  const found = await readDiscrepancy(db, orders.readId(id), TIMEOUTS);
  if (!found)
    return {
      title: "There is no such discrepancy",
      body: <NotHere what="discrepancy" />,
      status: 404,
    };
  const { kind, foundAt, resolvedAt } = found;
  const title = `Discrepancy ${found.id}: ${spoken(kind)}`;
  if (resolvedAt !== null) {
    const body = (
      <>
        {tried.problem !== undefined && <Note standing="trouble">{tried.problem}</Note>}
        <p>
          It is resolved already. <a href={LIST}>To all discrepancies</a>
        </p>
        <Known discrepancy={found} />
      </>
    );
    return { title, body };
  }
  const body = (
    <Confirm
      action="/ops/discrepancies/resolve"
      fields={{ id: String(found.id), found_at: foundAt.toISOString() }}
      count={1}
      question={<Known discrepancy={found} />}
      then={<p>Settle it where it belongs; then say how, and it is resolved.</p>}
      button="Resolve it"
      why={NOTE}
      back={LIST}
      {...tried}
    />
  );
  return { title, body };
}

async function askKind(db: Connection, kind: DiscrepancyKind, tried: Tried): Promise<View> {
  const { open, until } = await countOpen(db, kind, MOST_COUNTED, TIMEOUTS);
  const { means, todo } = meaningOfDiscrepancy(kind);
  const body = (
    <Confirm
      action="/ops/discrepancies/resolve"
      fields={{
        kind,
        found_until: until?.foundUntil.toISOString() ?? "",
        last_id: String(until?.lastId ?? ""),
      }}
      count={open.count}
      question={
        <>
          <p>
            All of kind <strong>{spoken(kind)}</strong>. {means} {todo}
          </p>
          <Many {...open} what="discrepancy" />
        </>
      }
      then={
        <p>
          All of them get the same note. Those that are found from now on, or found again, stay
          open.
        </p>
      }
      button={`Resolve ${counted(open.count, "discrepancy")}`}
      why={NOTE}
      back={LIST}
      {...tried}
    />
  );
  return { title: TITLE, body };
}

function Known({ discrepancy }: { discrepancy: ListedDiscrepancy }) {
  const { kind, objectId, eventId, detail, foundAt, resolvedAt, resolution } = discrepancy;
  const { means, todo } = meaningOfDiscrepancy(kind);
  return (
    <>
      <p>
        {means} {todo}
      </p>
      <Facts
        facts={[
          ["About", <ObjectLink id={objectId} />],
          ["Shown by event", <AnyEventLink id={eventId} />],
          ["What", <Detail detail={detail} />],
          ["Found", <Time at={foundAt} />],
          ...(resolvedAt === null
            ? []
            : ([
                ["Resolved", <Time at={resolvedAt} />],
                ["Note", resolution],
              ] as const)),
        ]}
      />
    </>
  );
}

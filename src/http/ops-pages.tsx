/** The pages of /ops: what is read for each, and who may see it. Translates; decides nothing. */
import { type Context, Hono } from "hono";
import { readTrace, traceStatements } from "../billing/trace.ts";
import { readAlerting } from "../config-operator.ts";
import type { Connection } from "../db/connect.ts";
import { MOST_COUNTED } from "../db/rows.ts";
import { examine } from "../doctor/examine.ts";
import type { Endpoints } from "../endpoints.ts";
import { listEvents } from "../inbox/listing.ts";
import { countIgnored } from "../inbox/review.ts";
import { concernsOf } from "../operate/alerts.ts";
import {
  readFigures,
  readOutboxNow,
  readReconciliationNow,
  readReview,
} from "../operate/figures.ts";
import { inspectEvent, readWholePayload } from "../operate/inspection.ts";
import { listActions, listDiscrepancies, listGaps, listMessages } from "../operate/records.ts";
import { standingsOf } from "../operate/standings.ts";
import { sweepingOf } from "../sweeping.ts";
import type { DoorEnv } from "./answers.ts";
import { BadRequest } from "./ops-fields.ts";
import { addForm } from "./ops-forms.tsx";
import { requeueing, resending } from "./ops-requeueing.tsx";
import { resolving } from "./ops-resolving.tsx";
import { filterOf, readView, showFault, showPage, type View } from "./page-answer.tsx";
import * as query from "./ops-query.ts";
import { visitorsOnly } from "./ops-visitors.tsx";
import { afterwardsOf, onDatabase, queryOf, TIMEOUTS } from "./ops-work.ts";
import { Actions, Gaps } from "./pages/actions.tsx";
import { diagramsOf } from "./pages/diagrams.ts";
import { Discrepancies } from "./pages/discrepancies.tsx";
import { Doctor } from "./pages/doctor.tsx";
import { Event, EventMissing } from "./pages/event.tsx";
import { Events } from "./pages/events.tsx";
import { PAGES, type PageName } from "./pages/frame.tsx";
import { Ignored, Review } from "./pages/groups.tsx";
import { Outbox } from "./pages/outbox.tsx";
import { Overview } from "./pages/overview.tsx";
import { NotHere } from "./pages/trouble.tsx";

const TRACING = { statements: traceStatements, read: readTrace };

export function opsPages(endpoints: Endpoints): Hono<DoorEnv> {
  const pages = new Hono<DoorEnv>({ strict: false });
  pages.onError((fault, c) => showFault(c, fault));
  pages.use(visitorsOnly);

  pages.get("/", (c) => {
    const alerting = readAlerting(c.env);
    return show(c, "overview", async (db) => {
      const figures = await readFigures(db, TIMEOUTS);
      const now = new Date();
      const concerns = concernsOf(figures, alerting, sweepingOf(endpoints, c.env));
      const standings = standingsOf(figures, concerns, alerting);
      const diagrams = diagramsOf(figures, now);
      const paused = !alerting.processing;
      return <Overview {...{ figures, standings, diagrams, paused, now }} />;
    });
  });

  pages.get("/events", async (c) => {
    const given = withTrimmedId(filterOf(c));
    const names = Object.keys(endpoints);
    const view = (found: Parameters<typeof Events>[0]["found"], next: string | null) => (
      <Events query={given} next={next} endpoints={names} found={found} />
    );
    try {
      const { filter, paging } = query.readEventQuery(given);
      return await show(c, "events", async (db) => {
        const found = await listEvents(db, filter, paging, TIMEOUTS);
        return view(found, found.next && query.writePlace(found.next));
      });
    } catch (fault) {
      if (!(fault instanceof BadRequest)) throw fault;
      const body = view({ problem: fault.message }, null);
      return showPage(
        c,
        placeOf("events"),
        Promise.resolve({ title: "Events", body, status: 400 }),
      );
    }
  });

  pages.get("/event", (c) => {
    const { endpoint = "", event_id: eventId = "" } = queryOf(c);
    const key = query.readKey(endpoint, eventId);
    const view = readView(c, async (db): Promise<View> => {
      const inspected = key && (await inspectEvent(db, key, "excerpt", TRACING, TIMEOUTS));
      return inspected
        ? { title: inspected.event.type, body: <Event inspected={inspected} /> }
        : {
            title: "There is no such event",
            body: <EventMissing endpoint={endpoint} eventId={eventId} />,
            status: 404,
          };
    });
    return showPage(c, { title: "Event", page: "events" }, view);
  });

  pages.get("/event/payload", async (c) => {
    const { endpoint = "", event_id: eventId = "" } = queryOf(c);
    const key = query.readKey(endpoint, eventId);
    const payload = key && (await onDatabase(c, (db) => readWholePayload(db, key, TIMEOUTS)));
    if (payload === null) return showNothing(c, "payload");
    return c.body(payload, 200, {
      "content-type": "application/json; charset=utf-8",
      "content-disposition": 'attachment; filename="event.json"',
    });
  });

  pages.get("/review", (c) =>
    show(c, "review", async (db) => {
      const { inbox, outbox } = await readReview(db, TIMEOUTS);
      return <Review inbox={inbox} outbox={outbox} />;
    }),
  );

  pages.get("/ignored", (c) =>
    show(c, "ignored", async (db) => (
      <Ignored groups={await countIgnored(db, MOST_COUNTED, TIMEOUTS)} />
    )),
  );

  pages.get("/discrepancies", (c) => {
    const given = { ...filterOf(c) };
    given["open"] ??= "true";
    const { filter, paging } = query.readDiscrepancyQuery(given);
    return show(c, "discrepancies", async (db) => {
      const { openDiscrepancies: open } = await readReconciliationNow(db, TIMEOUTS);
      const found = await listDiscrepancies(db, filter, paging, TIMEOUTS);
      const next = found.next && query.writeSpot(found.next);
      return <Discrepancies open={open} query={given} found={found} next={next} />;
    });
  });

  pages.get("/outbox", (c) => {
    const given = filterOf(c);
    const { filter, paging } = query.readMessageQuery(given);
    return show(c, "outbox", async (db) => {
      const outbox = await readOutboxNow(db, TIMEOUTS);
      const found = await listMessages(db, filter, paging, TIMEOUTS);
      const next = found.next && query.writeSpot(found.next);
      const { state } = filter;
      return <Outbox {...{ outbox, query: given, state, found, next }} />;
    });
  });

  pages.get("/gaps", (c) => {
    const given = filterOf(c);
    const paging = query.readGapQuery(given);
    return show(c, "gaps", async (db) => {
      const found = await listGaps(db, paging, TIMEOUTS);
      return <Gaps query={given} found={found} next={found.next && query.writeSpot(found.next)} />;
    });
  });

  pages.get("/actions", (c) => {
    const given = filterOf(c);
    const paging = query.readActionQuery(given);
    return show(c, "actions", async (db) => {
      const found = await listActions(db, paging, TIMEOUTS);
      const next = found.next && query.writeSpot(found.next);
      return <Actions query={given} found={found} next={next} />;
    });
  });

  pages.get("/doctor", (c) => {
    const examining = examine(endpoints, c.env, new URL(c.req.url), afterwardsOf(c));
    const view = examining.then((diagnosis) => ({
      title: "Doctor",
      body: <Doctor diagnosis={diagnosis} />,
    }));
    return showPage(c, placeOf("doctor"), view);
  });

  for (const form of [requeueing, resending, resolving]) addForm(pages, form);

  pages.all("*", (c) => showNothing(c, "page"));
  return pages;
}

function showNothing(c: Context<DoorEnv>, what: string): Promise<Response> {
  const body = <NotHere what={what} />;
  const view: View = { title: "There is nothing here", body, status: 404 };
  return showPage(c, { title: view.title, page: null }, Promise.resolve(view));
}

/** No event's id has a blank; what is pasted may. */
function withTrimmedId(given: Record<string, string>): Record<string, string> {
  const { event_id: id, ...others } = given;
  return id === undefined ? given : { ...others, event_id: id.trim() };
}

function show(
  c: Context<DoorEnv>,
  page: PageName,
  read: (db: Connection) => Promise<View["body"]>,
): Promise<Response> {
  const place = placeOf(page);
  const view = readView(c, async (db) => ({ title: place.title, body: await read(db) }));
  return showPage(c, place, view);
}

function placeOf(page: PageName): { readonly title: string; readonly page: PageName } {
  return { title: PAGES.find(({ name }) => name === page)?.title ?? page, page };
}

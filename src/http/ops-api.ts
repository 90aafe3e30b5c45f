/** /ops/api: what an operator reads and does, as JSON. Translates; decides nothing. */
import { type Context, Hono } from "hono";
import { readTrace, traceStatements } from "../billing/trace.ts";
import { readAlerting } from "../config-operator.ts";
import type { Connection } from "../db/connect.ts";
import { type Count, MOST_COUNTED } from "../db/rows.ts";
import { examine } from "../doctor/examine.ts";
import type { Endpoints } from "../endpoints.ts";
import { listEvents } from "../inbox/listing.ts";
import { countRequeueable, showRequeueable } from "../inbox/review.ts";
import {
  MOST_AT_ONCE,
  requeueEvents,
  requeueMessages,
  resolveDiscrepancies,
  resolveDiscrepancy,
} from "../operate/actions.ts";
import { concernsOf } from "../operate/alerts.ts";
import { readFigures, readLately } from "../operate/figures.ts";
import { inspectEvent } from "../operate/inspection.ts";
import {
  listActions,
  listDiscrepancies,
  listGaps,
  listMessages,
  type Page,
} from "../operate/records.ts";
import { countResendable, showResendable } from "../outbox/review.ts";
import { countOpen } from "../reconcile/discrepancies.ts";
import { sweepingOf } from "../sweeping.ts";
import { type DoorEnv, note } from "./answers.ts";
import { readBody } from "./body.ts";
import { operatorsOnly } from "./ops-access.ts";
import { actor, afterwardsOf, BODY_LIMITS, onDatabase, queryOf, TIMEOUTS } from "./ops-work.ts";
import { toJson, toJsonWith } from "./ops-json.ts";
import { BadRequest } from "./ops-fields.ts";
import * as orders from "./ops-orders.ts";
import * as query from "./ops-query.ts";

const FIRST = { order: "newest", limit: 10, after: null } as const;

export function opsApi(endpoints: Endpoints): Hono<DoorEnv> {
  const api = new Hono<DoorEnv>({ strict: false });
  api.use(operatorsOnly);

  api.get("/figures", async (c) => {
    const alerting = readAlerting(c.env);
    const figures = await onDatabase(c, (db) => readFigures(db, TIMEOUTS));
    const alerts = concernsOf(figures, alerting, sweepingOf(endpoints, c.env));
    // Which are many, and for whoever asks for them.
    const { byMinuteAndType: _, ...lastHour } = figures.lastHour;
    const { byHourAndType: __, ...lastDay } = figures.lastDay;
    const processing = alerting.processing ? "on" : "paused";
    return json(c, { ...figures, lastHour, lastDay, processing, alerts });
  });

  api.get("/rates", async (c) => {
    const { per, endpoint, type } = query.readRateQuery(queryOf(c));
    const { lastHour, lastDay } = await onDatabase(c, (db) => readLately(db, TIMEOUTS));
    const isAskedFor = (one: { endpoint: string; type: string }): boolean =>
      (endpoint ?? one.endpoint) === one.endpoint && (type ?? one.type) === one.type;
    const rates =
      per === "minute"
        ? lastHour.byMinuteAndType.filter(isAskedFor)
        : lastDay.byHourAndType.filter(isAskedFor);
    return json(c, { rates });
  });

  api.get("/doctor", async (c) =>
    json(c, await examine(endpoints, c.env, new URL(c.req.url), afterwardsOf(c))),
  );

  api.get("/events", async (c) => {
    const { filter, paging } = query.readEventQuery(queryOf(c));
    const { events, next } = await onDatabase(c, (db) => listEvents(db, filter, paging, TIMEOUTS));
    return json(c, { items: events, next: next && query.writePlace(next) });
  });

  api.get("/events/requeueable", async (c) => {
    const selection = orders.readEventSelection(queryOf(c));
    const { events, shown } = await onDatabase(c, (db) =>
      showRequeueable(db, selection, MOST_COUNTED, TIMEOUTS),
    );
    return json(c, { ...events, shown: shown && query.writeShown(shown) });
  });

  api.post("/events/requeue", async (c) => {
    const { selection, count, why } = orders.readEventRequeue(await readJson(c));
    const by = actor(c, why);
    return onDatabase(c, async (db) => {
      const { affected: requeued } = await requeueEvents(db, selection, count, by, TIMEOUTS);
      if (requeued === 0 && "eventId" in selection) {
        const { eventId, endpoint } = selection;
        const now = await listEvents(db, { eventId, endpoint }, FIRST, TIMEOUTS);
        if (now.events.length === 0) return c.json({ error: "There is no such event." }, 404);
        const states = now.events.map(({ endpoint: at, state }) => ({ endpoint: at, state }));
        return json(c, { requeued, left: 0, states });
      }
      const left = await orUnknown(countRequeueable(db, selection, MOST_COUNTED, TIMEOUTS));
      return done(c, { requeued, left, most_at_once: MOST_AT_ONCE });
    });
  });

  api.get("/events/:endpoint/:id{.+}", async (c) => {
    const key = query.readKey(c.req.param("endpoint"), c.req.param("id"));
    const tracing = { statements: traceStatements, read: readTrace };
    const found =
      key && (await onDatabase(c, (db) => inspectEvent(db, key, "whole", tracing, TIMEOUTS)));
    if (!found) return c.json({ error: "There is no such event." }, 404);
    const { payload, ...known } = found;
    return send(c, toJsonWith(known, "payload", payload?.text ?? null));
  });

  api.get("/messages", (c) => {
    const { filter, paging } = query.readMessageQuery(queryOf(c));
    return paged(c, (db) => listMessages(db, filter, paging, TIMEOUTS));
  });

  api.get("/messages/requeueable", async (c) => {
    const selection = orders.readMessageSelection(queryOf(c));
    const { messages, shown } = await onDatabase(c, (db) =>
      showResendable(db, selection, MOST_COUNTED, TIMEOUTS),
    );
    return json(c, { ...messages, shown: shown && query.writeShownMessages(shown) });
  });

  api.post("/messages/requeue", async (c) => {
    const { selection, count, why } = orders.readMessageRequeue(await readJson(c));
    const by = actor(c, why);
    return onDatabase(c, async (db) => {
      const { affected: requeued } = await requeueMessages(db, selection, count, by, TIMEOUTS);
      const left = await orUnknown(countResendable(db, selection, MOST_COUNTED, TIMEOUTS));
      return done(c, { requeued, left, most_at_once: MOST_AT_ONCE });
    });
  });

  api.get("/discrepancies", (c) => {
    const { filter, paging } = query.readDiscrepancyQuery(queryOf(c));
    return paged(c, (db) => listDiscrepancies(db, filter, paging, TIMEOUTS));
  });

  api.get("/discrepancies/resolvable", async (c) => {
    const kind = orders.readKind(queryOf(c));
    const counted = await onDatabase(c, (db) => countOpen(db, kind, MOST_COUNTED, TIMEOUTS));
    const { foundUntil = null, lastId = null } = counted.until ?? {};
    return json(c, { ...counted.open, foundUntil, lastId });
  });

  api.post("/discrepancies/resolve", async (c) => {
    const {
      kind,
      note: why,
      count,
      foundUntil,
      lastId,
    } = orders.readKindResolution(await readJson(c));
    const by = actor(c, why);
    return onDatabase(c, async (db) => {
      const { affected: resolved } = await resolveDiscrepancies(
        db,
        { kind, foundUntil, lastId },
        count,
        by,
        TIMEOUTS,
      );
      const counting = countOpen(db, kind, MOST_COUNTED, TIMEOUTS).then(({ open }) => open);
      return done(c, { resolved, left: await orUnknown(counting), most_at_once: MOST_AT_ONCE });
    });
  });

  api.post("/discrepancies/:id/resolve", async (c) => {
    const id = orders.readId(c.req.param("id"));
    const { note: why, foundAt } = orders.readResolution(await readJson(c));
    const by = actor(c, why);
    const resolved = await onDatabase(c, (db) =>
      resolveDiscrepancy(db, { id, foundAt }, by, TIMEOUTS),
    );
    if (typeof resolved === "object") return done(c, { resolved: resolved.affected });
    switch (resolved) {
      case "found again":
        return c.json({ error: "It was found again since then: look at it anew." }, 409);
      case "unknown":
        return c.json({ error: "There is no such discrepancy." }, 404);
    }
  });

  api.get("/actions", (c) => {
    const paging = query.readActionQuery(queryOf(c));
    return paged(c, (db) => listActions(db, paging, TIMEOUTS));
  });

  api.get("/gaps", (c) => {
    const paging = query.readGapQuery(queryOf(c));
    return paged(c, (db) => listGaps(db, paging, TIMEOUTS));
  });

  api.all("*", (c) => c.json({ error: "There is nothing here." }, 404));
  return api;
}

async function paged<T>(
  c: Context<DoorEnv>,
  list: (db: Connection) => Promise<Page<T>>,
): Promise<Response> {
  const { items, next } = await onDatabase(c, list);
  return json(c, { items, next: next && query.writeSpot(next) });
}

/** @throws BadRequest */
async function readJson(c: Context<DoorEnv>): Promise<unknown> {
  // A browser's form cannot say so without asking first.
  if (!/^application\/json\b/i.test(c.req.header("content-type") ?? "")) {
    throw new BadRequest("The body must be JSON, with content-type application/json.");
  }
  const body = await readBody(c.req.raw, BODY_LIMITS);
  if (typeof body === "string") throw new BadRequest(`The body cannot be read: ${body}.`, body);
  const noObject = new BadRequest("The body must be a JSON object.");
  try {
    const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: false }).decode(body);
    const parsed: unknown = JSON.parse(text);
    if (!Array.isArray(parsed)) return parsed;
  } catch {
    throw noObject;
  }
  throw noObject;
}

/** What was done is done, whether or not the rest can be counted. */
async function orUnknown(counting: Promise<Count>): Promise<number | null> {
  try {
    return (await counting).count;
  } catch {
    return null;
  }
}

function done(c: Context<DoorEnv>, changed: Readonly<Record<string, number | null>>): Response {
  note(c, changed);
  return json(c, changed);
}

const json = (c: Context<DoorEnv>, value: object): Response => send(c, toJson(value));

function send(c: Context<DoorEnv>, text: string): Response {
  return c.body(text, 200, { "content-type": "application/json; charset=utf-8" });
}

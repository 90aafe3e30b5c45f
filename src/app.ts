/**
 * The Hono app over a table of endpoints: mounts the doors, writes one log line per request, and
 * is the one place where a fault becomes a status.
 */
import { type Context, Hono } from "hono";
import { matchedRoutes } from "hono/route";
import type { Endpoints } from "./endpoints.ts";
import { explain } from "./faults.ts";
import { answer, type DoorEnv, note } from "./http/answers.ts";
import { metricsDoor } from "./http/metrics.ts";
import { opsDoor } from "./http/ops.tsx";
import { BadRequest } from "./http/ops-fields.ts";
import { unavailableFor } from "./http/told-to-operator.ts";
import { webhookDoor } from "./http/webhook.ts";
import { type Fields, type Level, log } from "./log.ts";

export function createApp(endpoints: Endpoints): Hono<DoorEnv> {
  const app = new Hono<DoorEnv>({ strict: false });

  app.use(async (c, next) => {
    const startedAt = Date.now();
    c.set("line", {});
    await next();
    const line = c.get("line");
    const status = c.res.status;
    const took = { status, ms: Date.now() - startedAt };
    if (isDelivery(c)) log(levelOf(status, line), "delivery", { ...line, ...took });
    else {
      // Those who look for what is not there are many, and no trouble of ours.
      log(status === 404 ? "info" : levelOf(status, line), "request", {
        method: c.req.method,
        route: routeOf(c),
        ...line,
        ...took,
      });
    }
  });

  app.get("/healthz", (c) => c.text("ok"));
  app.route("/webhooks/stripe", webhookDoor(endpoints));
  app.route("/ops", opsDoor(endpoints));
  app.route("/metrics", metricsDoor(endpoints));
  app.notFound((c) => c.json({ error: "There is nothing here." }, 404));

  app.onError((fault, c) => {
    if (!isDelivery(c) && fault instanceof BadRequest) {
      return c.json({ error: fault.message }, fault.status);
    }
    note(c, explain(fault));
    if (isDelivery(c)) return answer(c, "unavailable");
    const acted = c.req.method === "POST";
    const { todo, ...known } = unavailableFor(fault, acted);
    return c.json({ ...known, todo: todo ?? (acted ? LOOK_AT_ACTIONS : LOOK_AT_DOCTOR) }, 503);
  });
  return app;
}

const LOOK_AT_ACTIONS = "It may have been done, or not: GET /ops/api/actions says so.";
const LOOK_AT_DOCTOR = "GET /ops/api/doctor looks at what can be wrong.";

/** As it is mounted: what was really asked for may hold anything. Undefined: it leads nowhere. */
function routeOf(c: Context): string | undefined {
  return matchedRoutes(c).findLast(({ path }) => !path.endsWith("*"))?.path;
}

function isDelivery(c: Context): boolean {
  return c.req.path.startsWith("/webhooks/");
}

function levelOf(status: number, line: Fields): Level {
  // A body that Stripe signed and we cannot read is a fault of ours, and an event not received.
  if (status >= 500 || line["invalid"] === "shape") return "error";
  return status >= 400 || line["outcome"] === "needs_review" ? "warn" : "info";
}

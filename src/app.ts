/**
 * The Hono app over a table of endpoints: mounts the doors, writes one log line per delivery, and
 * is the one place where a fault becomes a status.
 */
import { Hono } from "hono";
import type { Endpoints } from "./endpoints.ts";
import { explain } from "./faults.ts";
import { answer, type DoorEnv, note } from "./http/answers.ts";
import { webhookDoor } from "./http/webhook.ts";
import { type Fields, type Level, log } from "./log.ts";

export function createApp(endpoints: Endpoints): Hono<DoorEnv> {
  const app = new Hono<DoorEnv>({ strict: false });

  app.use("/webhooks/*", async (c, next) => {
    const startedAt = Date.now();
    c.set("line", {});
    await next();
    const line = c.get("line");
    const status = c.res.status;
    log(levelOf(status, line), "delivery", { ...line, status, ms: Date.now() - startedAt });
  });

  app.get("/healthz", (c) => c.text("ok"));
  app.route("/webhooks/stripe", webhookDoor(endpoints));
  app.notFound((c) => c.json({ error: "There is nothing here." }, 404));

  app.onError((fault, c) => {
    note(c, explain(fault));
    return answer(c, "unavailable");
  });
  return app;
}

function levelOf(status: number, line: Fields): Level {
  // A body that Stripe signed and we cannot read is a fault of ours, and an event not received.
  if (status >= 500 || line["invalid"] === "shape") return "error";
  return status >= 400 || line["outcome"] === "needs_review" ? "warn" : "info";
}

/** POST /webhooks/stripe/:endpoint. Translates HTTP; what is done with an event is decided elsewhere. */
import { Hono } from "hono";
import {
  readSecrets,
  readSettings,
  readStripeApi,
  type ReceiveMode,
  type Settings,
} from "../config.ts";
import type { Connection } from "../db/connect.ts";
import { BEHIND_MS, withConnection, type WorkTime } from "../db/with-connection.ts";
import { DEFAULT_ENDPOINT, type Endpoints, rulesOf } from "../endpoints.ts";
import { processAndLog, type ProcessPolicy } from "../inbox/process.ts";
import { receiveAsync, type Received, RECORDING_MS, receiveSync } from "../inbox/receive.ts";
import { judge } from "../inbox/rules.ts";
import type { Delivery } from "../inbox/transitions.ts";
import { dispatchBatch, sendTo } from "../outbox/dispatch.ts";
import { type FetchThin, thinFetcher } from "../stripe/thin.ts";
import { type InvalidWebhook, type VerifiedEvent, verifyEvent } from "../stripe/verify.ts";
import { answer, type DoorEnv, note } from "./answers.ts";
import { BODY_LIMITS, readBody } from "./body.ts";

/** Stripe gives up on an answer after some 10 s; ours comes before, whatever the database does. */
const DEADLINE_MS = 9_000;

export function webhookDoor(endpoints: Endpoints): Hono<DoorEnv> {
  const door = new Hono<DoorEnv>({ strict: false });

  return door.all("/:endpoint?", async (c) => {
    const answerBy = Date.now() + DEADLINE_MS;
    const name = c.req.param("endpoint") ?? DEFAULT_ENDPOINT;
    const endpoint = Object.hasOwn(endpoints, name) ? endpoints[name] : undefined;
    if (!endpoint) return c.json({ error: "There is no such endpoint." }, 404);
    note(c, { endpoint: name });
    if (c.req.method !== "POST") {
      return c.json({ error: "Webhooks are posted." }, 405, { allow: "POST" });
    }

    const settings = readSettings(c.env);
    const secrets = readSecrets(c.env, endpoint.secrets);
    const event = await readEvent(c.req.raw, secrets, settings.toleranceSeconds);
    if (typeof event === "string") return answer(c, event);
    if ("invalid" in event) {
      note(c, { invalid: event.invalid, detail: event.detail });
      return answer(c, "invalid");
    }
    note(c, { event: event.id, type: event.type, altered: event.altered || undefined });

    const delivery = { event, endpoint: rulesOf(name, endpoint, settings) };
    // What a notification's handler asks for is fetched behind the answer.
    const asks = event.thin && "thinHandler" in judge(delivery.endpoint, event);
    const mode = asks ? "async" : (endpoint.mode ?? settings.mode);
    const fetch = thinFetcher(() => readStripeApi(c.env));
    const received = await receive(delivery, mode, settings, fetch, {
      deadlineMs: Math.max(1, answerBy - Date.now()),
      afterwards: (rest) => c.executionCtx.waitUntil(rest),
    });
    const { ignored, error, recorded } = received;
    note(c, { ignored, error, recorded });
    return answer(c, received.outcome);
  });
}

/** Apart, so that the bytes are not kept for as long as their event is worked on. */
async function readEvent(
  request: Request,
  secrets: readonly string[],
  toleranceSeconds: number,
): Promise<VerifiedEvent | InvalidDelivery | "too_large" | "too_slow"> {
  const body = await readBody(request, BODY_LIMITS);
  if (body === "cut_short") return { invalid: "body", detail: "cut short" };
  if (typeof body === "string") return body;
  return verifyEvent(body, request.headers.get("stripe-signature"), secrets, toleranceSeconds);
}

type InvalidDelivery = InvalidWebhook | { readonly invalid: "body"; readonly detail: "cut short" };

function receive(
  delivery: Delivery,
  mode: ReceiveMode,
  settings: Settings,
  fetch: FetchThin,
  time: WorkTime,
): Promise<Received> {
  const { retry, receive: timeouts, process, processing, database } = settings;
  return withConnection(database, time, async ({ db, remainingMs, behind }) => {
    if (processing && mode === "sync") {
      const received = await receiveSync(db, delivery, { ...retry, timeouts, remainingMs });
      if (received.outcome === "processed") behind(() => dispatch(db, settings));
      return received;
    }
    const leaseSeconds = processing ? process.leaseSeconds : null;
    const { received, claim } = await receiveAsync(db, delivery, leaseSeconds, timeouts);
    const rules = new Map([[delivery.endpoint.name, delivery.endpoint]]);
    if (claim) {
      behind(async () => {
        const policy = processPolicy(settings, fetch);
        const outcome = await processAndLog(db, claim, rules, policy, false);
        if (outcome === "processed") await dispatch(db, settings);
      });
    }
    return received;
  });
}

/** What was just booked leaves at once; should that fail, the next tick sends it. */
async function dispatch(
  db: Connection,
  { dispatch: dispatching, receive: timeouts }: Settings,
): Promise<void> {
  if (!dispatching) return;
  await dispatchBatch(db, sendTo(dispatching.queue), { ...dispatching, timeouts });
}

/** The claim's own time: whatever is not done by then, the next tick takes when the lease ends. */
function processPolicy({ retry, receive: timeouts }: Settings, fetch: FetchThin): ProcessPolicy {
  const endsAt = Date.now() + BEHIND_MS - RECORDING_MS;
  const workMs = (): number => endsAt - Date.now();
  return { ...retry, timeouts: { ...timeouts, remainingMs: workMs }, workMs, fetch };
}

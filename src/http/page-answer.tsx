/**
 * A page as an answer. What takes longer than a moment begins with its frame and says that it reads,
 * so that a slow database does not look like a dead one; what follows says how it ended.
 */
import type { Context } from "hono";
import type { Child } from "hono/jsx";
import type { ContentfulStatusCode } from "hono/utils/http-status";
import type { Connection } from "../db/connect.ts";
import { explain } from "../faults.ts";
import { log } from "../log.ts";
import { readDone } from "../operate/done.ts";
import { type DoorEnv, note } from "./answers.ts";
import { identify } from "./ops-access.ts";
import { BadRequest } from "./ops-fields.ts";
import { onDatabase, queryOf, TIMEOUTS } from "./ops-work.ts";
import { Content, frameHalves, type PageName, rendered } from "./pages/frame.tsx";
import { JustDone } from "./pages/just-done.tsx";
import { Refused, Trouble } from "./pages/trouble.tsx";
import { unavailableFor } from "./told-to-operator.ts";

export interface View {
  readonly title: string;
  readonly body: Child;
  readonly status?: ContentfulStatusCode;
}

interface Place {
  readonly title: string;
  readonly page: PageName | null;
}

/** By then most pages are there; a person begins to wonder. */
const PATIENCE_MS = 1_000;

export async function showPage(
  c: Context<DoorEnv>,
  place: Place,
  reading: Promise<View>,
): Promise<Response> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const patience = new Promise<null>((resolve) => {
    timer = setTimeout(() => resolve(null), PATIENCE_MS);
  });
  try {
    const view = await Promise.race([reading, patience]);
    if (!view) return await showLater(c, place, reading);
    const [before, after] = await halves(c, { ...place, title: view.title });
    return html(c, before + (await mainOf(view)) + after, view.status ?? 200);
  } finally {
    clearTimeout(timer);
  }
}

async function showLater(
  c: Context<DoorEnv>,
  place: Place,
  reading: Promise<View>,
): Promise<Response> {
  note(c, { slow: true });
  const [before, after] = await halves(c, place);
  const utf8 = new TextEncoder();
  const body = new ReadableStream<Uint8Array>({
    start: async (stream) => {
      stream.enqueue(utf8.encode(before + (await rendered(<Reading />))));
      const main = await reading.then(mainOf).catch((fault: unknown) => {
        // The status has left already, and the request's line with it.
        if (!(fault instanceof BadRequest)) {
          log("error", "slow_page", { title: place.title, ...explain(fault) });
        }
        return mainOf(troubleView(fault, false));
      });
      stream.enqueue(utf8.encode(main + after));
      stream.close();
    },
  });
  return html(c, body, 200);
}

function Reading() {
  return (
    <p class="reading" role="status">
      Reading. It takes longer than usual; soon there is an answer, or a reason.
    </p>
  );
}

/** What went wrong, as a page with its status. */
export async function showFault(c: Context<DoorEnv>, fault: unknown): Promise<Response> {
  const view = troubleView(fault, c.req.method === "POST");
  const [before, after] = await halves(c, { title: view.title, page: null });
  if (!(fault instanceof BadRequest)) note(c, explain(fault));
  return html(c, before + (await mainOf(view)) + after, view.status ?? 503);
}

function troubleView(fault: unknown, acted: boolean): View {
  if (fault instanceof BadRequest) {
    const body = <Refused problem={fault.message} />;
    return { title: "That cannot be done", body, status: fault.status };
  }
  const body = <Trouble fault={unavailableFor(fault, acted)} acted={acted} />;
  return { title: "Trouble", body, status: 503 };
}

/** Reads on one connection, with what its visitor has just done, if the URL says so. */
export function readView(
  c: Context<DoorEnv>,
  read: (db: Connection) => Promise<View>,
): Promise<View> {
  const { done: given, agreed = "" } = queryOf(c);
  const done = doneOf(given);
  const { operator } = c.get("identity");
  return onDatabase(c, async (db) => {
    const record =
      done === null || operator === null ? null : await readDone(db, operator, done, TIMEOUTS);
    const view = await read(db);
    if (!record) return view;
    const body = (
      <>
        <JustDone record={record} agreed={/^\d{1,15}$/.test(agreed) ? Number(agreed) : null} />
        {view.body}
      </>
    );
    return { ...view, body };
  });
}

function doneOf(done: string | undefined): readonly [number, number] | null {
  const [, first, last] = /^(\d{1,15})-(\d{1,15})$/.exec(done ?? "") ?? [];
  return first === undefined || last === undefined ? null : [Number(first), Number(last)];
}

/** What was asked for, without what a form sends empty, and what speaks of something else. */
export function filterOf(c: Context<DoorEnv>): Record<string, string> {
  const { done: _, agreed: __, ...query } = queryOf(c);
  return withoutEmpty(query);
}

export function withoutEmpty(given: Record<string, string>): Record<string, string> {
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value.trim() !== ""));
}

async function halves(c: Context<DoorEnv>, place: Place): Promise<readonly [string, string]> {
  const identity = await identify(c);
  return frameHalves({ ...place, identity, host: new URL(c.req.url).host });
}

function mainOf({ title, body }: View): Promise<string> {
  return rendered(<Content title={title}>{body}</Content>);
}

function html(
  c: Context<DoorEnv>,
  body: string | ReadableStream<Uint8Array>,
  status: ContentfulStatusCode,
): Response {
  return c.body(body, status, { "content-type": "text/html; charset=utf-8" });
}

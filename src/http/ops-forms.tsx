/**
 * What a person does on the pages. Each is asked first, with its count and a reason to be given, and
 * done then; where one goes on says what was done, from its record. Repeated, it changes nothing more
 * than was agreed to.
 */
import type { Context, Hono } from "hono";
import type { Connection } from "../db/connect.ts";
import type { Done } from "../operate/actions.ts";
import { readDone } from "../operate/done.ts";
import { type DoorEnv, note } from "./answers.ts";
import { BadRequest } from "./ops-fields.ts";
import { readForm, typedIn } from "./form-body.ts";
import { filterOf, readView, showPage, type View, withoutEmpty } from "./page-answer.tsx";
import { onDatabase, TIMEOUTS } from "./ops-work.ts";
import { NothingDone } from "./pages/confirm.tsx";
import { hrefOf } from "./pages/links.ts";

export type Fields = Readonly<Record<string, string>>;

/** What was typed before, and what is wrong with it. */
export interface Tried {
  readonly problem?: string;
  readonly typed?: string;
}

/** A page of ours. */
export interface Whereto {
  readonly path: string;
  readonly query: Fields;
}

/** One thing that can be done. */
export interface OrderForm {
  readonly path: string;
  readonly title: string;
  /** @throws BadRequest for fields that say nothing that could be done. */
  readonly ask: (db: Connection, fields: Fields, tried: Tried) => Promise<View>;
  /** @throws BadRequest */
  readonly act: (
    c: Context<DoorEnv>,
    form: Fields,
  ) => Promise<{ readonly done: Done; readonly why: string; readonly back: Whereto }>;
}

/** Whoever presses a button twice is told what the first time did. */
async function doneBefore(
  c: Context<DoorEnv>,
  said: { readonly subject: string; readonly why: string },
): Promise<readonly [number, number] | null> {
  const { operator } = c.get("identity");
  if (operator === null) return null;
  const before = await onDatabase(c, (db) => readDone(db, operator, said, TIMEOUTS));
  return before?.records ?? null;
}

/** Asks by GET, and does it by POST. */
export function addForm(pages: Hono<DoorEnv>, { path, title, ask, act }: OrderForm): void {
  const place = { title, page: null };
  pages.get(path, (c) => {
    const fields = filterOf(c);
    return showPage(
      c,
      place,
      readView(c, (db) => ask(db, fields, {})),
    );
  });
  pages.post(path, async (c) => {
    const form = await readForm(c);
    try {
      const { done, why, back } = await act(c, form);
      note(c, { changed: done.affected });
      const records = done.records ?? (await doneBefore(c, { subject: done.subject, why }));
      if (records) {
        // What was agreed to and not done is said, too.
        const isLess = done.records !== null && done.affected < Number(form["count"]);
        const agreed = isLess ? form["count"] : undefined;
        const query = { ...back.query, done: records.join("-"), agreed };
        return c.redirect(hrefOf(back.path, query), 303);
      }
      const body = <NothingDone back={hrefOf(back.path, back.query)} />;
      return await showPage(c, place, Promise.resolve({ title, body, status: 409 }));
    } catch (fault) {
      if (!(fault instanceof BadRequest)) throw fault;
      const { typed, fields } = typedIn(withoutEmpty(form));
      const again = readView(c, async (db) => {
        const view = await ask(db, fields, { problem: fault.message, typed });
        return { ...view, status: fault.status };
      });
      return showPage(c, place, again);
    }
  });
}

/** A form's body, from whoever knocks. */
import type { Context } from "hono";
import type { DoorEnv } from "./answers.ts";
import { readBody } from "./body.ts";
import { BadRequest } from "./ops-fields.ts";
import { BODY_LIMITS, once } from "./ops-work.ts";

/** @throws BadRequest for what is no form, is too long or too slow, or says one thing twice. */
export async function readForm(c: Context<DoorEnv>): Promise<Record<string, string>> {
  const body = await readBody(c.req.raw, BODY_LIMITS);
  if (typeof body === "string") throw new BadRequest(`The form cannot be read: ${body}.`, body);
  const form = new URLSearchParams(new TextDecoder().decode(body));
  return once([...new Set(form.keys())].map((name) => [name, form.getAll(name)]));
}

/** What a person wrote, apart from what the form is about; how many it was about is counted anew. */
export function typedIn(form: Readonly<Record<string, string>>): {
  readonly typed: string;
  readonly fields: Readonly<Record<string, string>>;
} {
  const { why, note: typed = why ?? "", count: _, shown: __, ...fields } = form;
  return { typed, fields };
}

/** A form's body, from whoever knocks. */
import type { Context } from "hono";
import type { DoorEnv } from "./answers.ts";
import { readBody } from "./body.ts";
import { BadRequest } from "./ops-fields.ts";
import { once } from "./ops-work.ts";

/** A note of 500 characters, each in up to 12 bytes, and an id. */
const LIMITS = { bytes: 16_384, ms: 5_000 };

/** @throws BadRequest for what is no form, is too long or too slow, or says one thing twice. */
export async function readForm(c: Context<DoorEnv>): Promise<Record<string, string>> {
  const body = await readBody(c.req.raw, LIMITS);
  if (typeof body === "string") throw new BadRequest(`The form cannot be read: ${body}.`, body);
  const form = new URLSearchParams(new TextDecoder().decode(body));
  return once([...new Set(form.keys())].map((name) => [name, form.getAll(name)]));
}

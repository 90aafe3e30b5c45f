/** Sends any JSON text as the metadata of a paid invoice, and reads back what Postgres holds. */
import { expect } from "vitest";
import { anInvoiceEvent, type Testbed } from "./testbed.ts";

export interface Stored {
  readonly altered: unknown;
  /** `data.object.metadata`, parsed. */
  readonly metadata: unknown;
  readonly text: string;
}

/** Delivers a paid invoice whose metadata is this JSON text, and reads back what was stored. */
export async function store(inbox: Testbed, metadataJson: string): Promise<Stored> {
  const event = anInvoiceEvent();
  const { entries } = await inbox.books();
  const answer = await inbox.deliver(withMetadata(event, metadataJson));
  expect(answer).toMatchObject({ status: 200, outcome: "processed", event: event.id });
  expect(await inbox.books()).toMatchObject({ entries: entries + 1 });
  const [row] = await inbox.rows(
    `select payload_altered as altered, jsonb_typeof(payload) as kind,
       payload::text as whole, (payload #> '{data,object,metadata}')::text as metadata
     from webhook_inbox where event_id = $1`,
    [event.id],
  );
  expect(row?.["kind"]).toBe("object");
  const rest = JSON.parse(String(row?.["whole"]));
  rest.data.object.metadata = event.data?.object["metadata"];
  expect(rest).toEqual(event);
  const text = String(row?.["metadata"]);
  return { altered: row?.["altered"], metadata: JSON.parse(text), text };
}

function withMetadata(event: ReturnType<typeof anInvoiceEvent>, metadataJson: string): string {
  const marked = { ...event.data?.object, metadata: "HERE" };
  const json = JSON.stringify({ ...event, data: { ...event.data, object: marked } });
  return json.replace('"HERE"', () => metadataJson);
}

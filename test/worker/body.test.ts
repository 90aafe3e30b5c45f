/** The signature is checked over the exact bytes, whatever they look like; 4 MiB are read, no more. */
import { describe, expect, test } from "vitest";
import { signatureHeader } from "../local/sign.ts";
import { anInvoiceEvent, openTestbed, SECRET } from "./testbed.ts";

const PATH = "/webhooks/stripe/billing";
const LIMIT = 4 * 1024 * 1024;
const utf8 = new TextEncoder();

const jsonOf = (event: object): string => JSON.stringify(event, null, 2);

const reversed = (value: object): object => Object.fromEntries(Object.entries(value).toReversed());

describe("an event is taken in the very form in which it was signed", () => {
  test.each<{ form: string; write: (event: object) => string }>([
    { form: "pretty-printed", write: jsonOf },
    { form: "with CRLF line ends", write: (event) => jsonOf(event).replaceAll("\n", "\r\n") },
    { form: "with tabs and blanks around", write: (event) => `\t ${jsonOf(event)} \n` },
    { form: "with a newline at its end", write: (event) => `${JSON.stringify(event)}\n` },
    { form: "with its keys in another order", write: (event) => JSON.stringify(reversed(event)) },
    {
      form: "with accents and emoji as they are",
      write: (event) => JSON.stringify({ ...event, note: "é😀 – Ünïcode \u2028" }),
    },
    {
      form: "with accents and emoji as escapes",
      write: (event) =>
        JSON.stringify({ ...event, note: "é😀" }).replaceAll("é😀", "\\u00e9\\ud83d\\ude00"),
    },
    {
      form: "with escapes that nobody needs",
      write: (event) =>
        JSON.stringify(event).replaceAll("/", "\\/").replace('"type"', '"\\u0074ype"'),
    },
  ])("$form", async ({ write }) => {
    const inbox = await openTestbed();
    const event = anInvoiceEvent();
    expect(await inbox.deliver(write(event))).toMatchObject({ status: 200, event: event.id });
    expect(await inbox.books()).toMatchObject({ inbox: 1, entries: 1 });
  });
});

describe("the same event in another form is refused under the old signature", () => {
  const event = anInvoiceEvent();
  const sent = JSON.stringify(event);
  test.each([
    { form: "re-serialised", other: jsonOf(event) },
    { form: "a newline more", other: `${sent}\n` },
    { form: "a byte order mark before it", other: `\uFEFF${sent}` },
    { form: "a blank before it", other: ` ${sent}` },
    { form: "an accent composed otherwise", other: sent.normalize("NFD") },
    { form: "one amount changed", other: sent.replaceAll("4200", "4201") },
    { form: "empty", other: "" },
  ])("$form", async ({ other }) => {
    const inbox = await openTestbed();
    expect(other).not.toBe(sent);
    const headers = { "stripe-signature": await signatureHeader(sent, SECRET) };
    expect(await inbox.post(PATH, { body: other, headers })).toMatchObject({ status: 400 });
    expect(await inbox.books()).toMatchObject({ inbox: 0 });
    expect(await inbox.post(PATH, { body: sent, headers })).toMatchObject({ status: 200 });
  });
});

test("bytes that are no UTF-8 are refused, and are not taken for U+FFFD", async () => {
  const inbox = await openTestbed();
  const [before, after] = JSON.stringify({ ...anInvoiceEvent(), note: "|" }).split("|");
  const bytes = Uint8Array.of(...utf8.encode(before), 0xc3, 0x28, ...utf8.encode(after));
  expect(await inbox.deliver(bytes)).toMatchObject({ status: 400, event: undefined });

  const lossy = new TextDecoder().decode(bytes);
  const headers = { "stripe-signature": await signatureHeader(lossy, SECRET) };
  expect(await inbox.post(PATH, { body: bytes, headers })).toMatchObject({ status: 400 });
  expect(await inbox.books()).toMatchObject({ inbox: 0 });
  expect(await inbox.post(PATH, { body: lossy, headers })).toMatchObject({ status: 200 });
});

/** An invoice event whose JSON has exactly `size` bytes. */
function eventOfSize(size: number): string {
  const event = anInvoiceEvent();
  const padded = (description: string): string => JSON.stringify({ ...event, description });
  return padded("é".repeat(10) + "x".repeat(size - utf8.encode(padded("")).length - 20));
}

const inPieces = (body: string, size: number): ReadableStream<Uint8Array> => {
  const bytes = utf8.encode(body);
  let from = 0;
  return new ReadableStream({
    pull(controller) {
      if (from >= bytes.length) return controller.close();
      controller.enqueue(bytes.slice(from, (from += size)));
    },
  });
};

describe("size", () => {
  test.each([
    { size: 300_000, status: 200 },
    { size: 3_000_000, status: 200 },
    { size: LIMIT, status: 200 },
    { size: LIMIT + 1, status: 413 },
    { size: 3 * LIMIT, status: 413 },
  ])("$size bytes: $status, said beforehand or not", async ({ size, status }) => {
    const inbox = await openTestbed();
    const announced = eventOfSize(size);
    const streamed = eventOfSize(size);
    expect(utf8.encode(announced)).toHaveLength(size);

    const headers = { "stripe-signature": await signatureHeader(announced, SECRET) };
    const length = { "content-length": String(size) };
    const first = await inbox.post(PATH, { body: announced, headers: { ...headers, ...length } });
    const second = await inbox.post(PATH, {
      body: inPieces(streamed, 60_007),
      headers: { "stripe-signature": await signatureHeader(streamed, SECRET) },
    });
    expect([first.status, second.status]).toEqual([status, status]);
    if (status === 413) expect(second.text).toBe('{"outcome":"too_large"}');
    const taken = status === 200 ? 2 : 0;
    expect(await inbox.books()).toMatchObject({ inbox: taken, entries: taken });
  });

  test("a chunk is not kept when it has been read: small ones would take far more than they hold", async () => {
    const inbox = await openTestbed();
    const event = anInvoiceEvent();
    const bytes = utf8.encode(JSON.stringify(event));
    // The sender uses its one buffer again as soon as it is asked for more.
    const buffer = new Uint8Array(1);
    let sent = 0;
    const body = new ReadableStream<Uint8Array>(
      {
        pull(controller) {
          const next = bytes[sent++];
          if (next === undefined) return controller.close();
          buffer[0] = next;
          controller.enqueue(buffer);
        },
      },
      { highWaterMark: 0 },
    );
    const headers = { "stripe-signature": await signatureHeader(bytes, SECRET) };
    expect(await inbox.post(PATH, { body, headers })).toMatchObject({
      status: 200,
      event: event.id,
    });
  });

  test("a Content-Length that lies, or says nothing, changes nothing", async () => {
    const inbox = await openTestbed();
    for (const length of ["1", "0", "abc", "-5", ""]) {
      const headers = { "content-length": length };
      const body = inPieces(eventOfSize(LIMIT + 1), 1 << 20);
      expect(await inbox.post(PATH, { body, headers }), length).toMatchObject({ status: 413 });
    }
  });

  test("a stream without end is left when it passes the limit", async () => {
    const inbox = await openTestbed();
    const piece = new Uint8Array(1 << 16).fill(0x20);
    let pulled = 0;
    let cancelled = false;
    const endless = new ReadableStream<Uint8Array>({
      pull(controller) {
        pulled += piece.length;
        controller.enqueue(piece.slice());
      },
      cancel() {
        cancelled = true;
      },
    });
    expect(await inbox.post(PATH, { body: endless })).toMatchObject({ status: 413 });
    expect(cancelled).toBe(true);
    expect(pulled).toBeLessThan(LIMIT + 8 * piece.length);
  });
});

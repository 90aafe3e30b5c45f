/**
 * Text reaches the row as Stripe sent it. Only what jsonb cannot hold is replaced; the row then
 * says so, and is booked like any other.
 */
import { beforeAll, describe, expect, test } from "vitest";
import { store } from "./store-metadata.ts";
import { openTestbed, type Testbed } from "./testbed.ts";

let inbox: Testbed;
beforeAll(async () => void (inbox = await openTestbed()));

describe("text that jsonb refuses is stored with U+FFFD in its place", () => {
  test.each([
    { what: "U+0000 in a value", sent: '{"note":"a\\u0000b"}', stored: { note: "a\uFFFDb" } },
    { what: "U+0000 alone", sent: '["\\u0000"]', stored: ["\uFFFD"] },
    { what: "U+0000 in a key", sent: '{"a\\u0000":1}', stored: { "a\uFFFD": 1 } },
    { what: "a high surrogate alone", sent: '["x\\ud83dx"]', stored: ["x\uFFFDx"] },
    { what: "a low surrogate alone", sent: '["\\uDE00"]', stored: ["\uFFFD"] },
    { what: "a pair the wrong way round", sent: '["\\ude00\\ud83d"]', stored: ["\uFFFD\uFFFD"] },
    { what: "a lone surrogate in a key", sent: '{"\\uDBFF":"😀"}', stored: { "\uFFFD": "😀" } },
    {
      what: "three at three depths",
      sent: '{"a":[{"\\u0000":["\\ud800"]}],"b":"\\u0000"}',
      stored: { a: [{ "\uFFFD": ["\uFFFD"] }], b: "\uFFFD" },
    },
    {
      what: "two keys that become one, the later value staying",
      sent: '{"k\\u0000":1,"k\\ud800":2,"k":3}',
      stored: { "k\uFFFD": 2, k: 3 },
    },
    {
      what: "what stands behind six innocent characters",
      sent: '["\\\\u0000","\\u0000"]',
      stored: ["\\u0000", "\uFFFD"],
    },
  ])("$what", async ({ sent, stored }) => {
    expect(await store(inbox, sent)).toMatchObject({ altered: true, metadata: stored });
  });
});

describe("text that jsonb can hold is stored as it is", () => {
  test.each([
    { what: "the six characters of an escape", sent: '["\\\\u0000"]', stored: ["\\u0000"] },
    { what: "the same behind a backslash", sent: '["\\\\\\\\u0000"]', stored: ["\\\\u0000"] },
    {
      what: "the same as a key",
      sent: '{"\\\\u0000":"\\\\ud800"}',
      stored: { "\\u0000": "\\ud800" },
    },
    {
      what: "keys that are one escape each",
      sent: '{"x":0,"\\n":1,"\\"":2,"\\\\":3,"\\u0041":4}',
      stored: { x: 0, "\n": 1, '"': 2, "\\": 3, A: 4 },
    },
    { what: "an emoji", sent: '["😀"]', stored: ["😀"] },
    { what: "an emoji as a pair of escapes", sent: '["\\ud83d\\uDE00"]', stored: ["😀"] },
    { what: "U+FFFD itself", sent: '["\uFFFD","\\ufffd"]', stored: ["\uFFFD", "\uFFFD"] },
    {
      what: "control characters",
      sent: '["\\u0001\\u001f\\u007f\\n"]',
      stored: ["\u0001\u001f\u007f\n"],
    },
    { what: "noncharacters", sent: '["\\uffff\\ufffe"]', stored: ["\uffff\ufffe"] },
    {
      what: "digits with an e",
      sent: '["x: 1e400",":1e5",",9E9"]',
      stored: ["x: 1e400", ":1e5", ",9E9"],
    },
    { what: "500 digits as text", sent: `["${"7".repeat(500)}"]`, stored: ["7".repeat(500)] },
  ])("$what", async ({ sent, stored }) => {
    expect(await store(inbox, sent)).toMatchObject({ altered: false, metadata: stored });
  });

  test("keys that mean something to JavaScript", async () => {
    const sent = '{"__proto__": {"paid": false}, "toString": "x", "constructor": {"name": 1}}';
    const { altered, text } = await store(inbox, sent);
    expect(altered).toBe(false);
    for (const part of sent.slice(1, -1).split(", ")) expect(text).toContain(part);
  });

  test("such keys beside a replaced text", async () => {
    const { altered, text } = await store(
      inbox,
      '{"__proto__": {"paid": "\\u0000"}, "a\\u0000": 1}',
    );
    expect(altered).toBe(true);
    expect(text).toContain('"__proto__": {"paid": "\uFFFD"}');
  });
});

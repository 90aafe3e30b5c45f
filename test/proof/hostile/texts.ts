/** Keys, characters, numbers, lengths and sizes that readers of JSON have stumbled over. */
import { anEvent, json, spliced } from "./bodies.ts";
import type { Body } from "./input.ts";

export const NASTY_KEYS = [
  "__proto__",
  "constructor",
  "prototype",
  "toString",
  "valueOf",
  "hasOwnProperty",
  "toJSON",
  "then",
  "length",
  "rawJSON",
  "",
  " ",
  "0",
  "-1",
  "id ",
  "\0",
  "\ud800",
  "\udc00",
  "\ufffd",
  "\ufeffid",
  "\u202edi",
  "i\u200bd",
  "😀",
  "$ref",
  "key\n",
  "x".repeat(70_000),
] as const;

const KEY_VALUES = ['"x"', '{"id":"evt_other","object":"event","paid":true}'];

/** Each level of an event with one key more; that it comes last does not make it count. */
export const keys: readonly Body[] = [
  ...NASTY_KEYS.flatMap((key) =>
    KEY_VALUES.flatMap((value) => {
      const member = `"?":0,${JSON.stringify(key)}:${value}`;
      const put = (where: string, event: unknown): Body => ({
        name: `${where}: ${JSON.stringify(key).slice(0, 20)}: ${value.slice(0, 12)}`,
        text: () => JSON.stringify(event).replace('"?":0', () => member),
      });
      return [
        put("event", anEvent({ "?": 0 })),
        put("data", anEvent({ data: { object: anEvent()["data"], "?": 0 } })),
        put("invoice", anEvent({}, { "?": 0 })),
        put("metadata", anEvent({}, { metadata: { "?": 0 } })),
      ];
    }),
  ),
  ...[
    ["the id twice", '"id":"evt_first","id":"evt_hostile"'],
    ["the id twice, the last one no id", '"id":"evt_hostile","id":null'],
    ["the type twice", '"type":"invoice.paid","type":"invoice.voided"'],
    ["the data twice", '"data":{"object":{"id":"in_first"}},"data":{"object":{"id":"in_last"}}'],
    ["the data twice, the last without an object", '"data":{"object":{}},"data":{}'],
    ["livemode twice", '"livemode":true,"livemode":false'],
    ["the id escaped", '"\\u0069\\u0064":"evt_escaped"'],
    ["a thousand times the same key", '"x":1,'.repeat(1_000).slice(0, -1)],
  ].map(([name = "", members = ""]): Body => ({
    name,
    text: () => JSON.stringify(anEvent({ "?": 0 })).replace('"?":0', () => members),
  })),
  {
    name: "20,000 keys",
    text: () =>
      JSON.stringify(
        anEvent(
          {},
          { metadata: Object.fromEntries(Array.from({ length: 20_000 }, (_, n) => [`k${n}`, n])) },
        ),
      ),
  },
];

const TEXTS: Readonly<Record<string, string>> = {
  "U+0000": '"a\\u0000b"',
  "nothing but U+0000": `"${"\\u0000".repeat(1_000)}"`,
  "a high surrogate": '"\\ud83d"',
  "a low surrogate": '"\\ude00"',
  "surrogates the wrong way round": '"\\ude00\\ud83d"',
  "an emoji": '"😀"',
  "an emoji, escaped": '"\\ud83d\\ude00"',
  "six characters that look like U+0000": '"\\\\u0000"',
  noncharacters: '"\\uffff\\ufffe\ufdd0"',
  "marks that turn the direction": '"\u202e\u2066\u200f\u061cdiap"',
  "a byte order mark": '"\ufeff"',
  "control characters": '"\\u0001\\u001b[2J\\u007f\\u0085\\b\\f"',
  "line ends": '"a\\r\\n\\u2028\\u2029b"',
  "letters with a hundred accents": `"e${"\u0301".repeat(100)}"`,
  "a ligature of a hundred code points": `"${"👨\u200d".repeat(50)}👦"`,
  "the last code point": '"\u{10ffff}"',
  SQL: `"'; drop table webhook_inbox; -- $1 %s"`,
  HTML: '"<script>alert(1)</script>"',
  "a format string": '"%n%s%x${x}{{x}}"',
  "an invoice's id as JSON": '"{\\"id\\":\\"in_1\\"}"',
};

const PLACES: readonly (readonly [string, unknown])[] = [
  ["the event's id", anEvent({ id: "?" })],
  ["its type", anEvent({ type: "?" })],
  ["its account", anEvent({ account: "?" })],
  ["its livemode", anEvent({ livemode: "?" })],
  ["the invoice's id", anEvent({}, { id: "?" })],
  ["its status", anEvent({}, { status: "?" })],
  ["its customer", anEvent({}, { customer: "?" })],
  ["its currency", anEvent({}, { currency: "?" })],
  ["its metadata", anEvent({}, { metadata: { note: "?" } })],
  ["its amount", anEvent({}, { amount_paid: "?" })],
];

export const unicode: readonly Body[] = PLACES.flatMap(([place, event]) =>
  Object.entries(TEXTS).map(([what, text]) => spliced(`${what} in ${place}`, event, text)),
);

export const NUMBERS: readonly string[] = [
  ..."-0 0.0 1e0 42e2 1E+2 4200.0 4200.5 -1 5e-324 1e-325 1e308 1e309 1e400 1e401 -1e500".split(
    " ",
  ),
  ..."1e131071 1e131072 1e200000 1e-200000 1e-16383 1e-16384 1e999999999999".split(" "),
  ..."0e99999999 -0e-99999 2147483648 9007199254740991 9007199254740992".split(" "),
  ..."9007199254740993 9223372036854775807 9223372036854775808 -9223372036854775809".split(" "),
  "7".repeat(390),
  "7".repeat(410),
  "7".repeat(20_000),
  `0.${"3".repeat(390)}`,
  `0.${"3".repeat(410)}`,
  `1${"0".repeat(20_000)}e-20000`,
];

const NUMBER_PLACES = [
  ...PLACES.filter(([place]) => /event|account|invoice|amount|metadata/.test(place)),
  ["its time", anEvent({ created: "?" })],
] as const;

export const numbers: readonly Body[] = [
  ...NUMBERS.flatMap((number) =>
    NUMBER_PLACES.map(([place, event]) =>
      spliced(`${number.slice(0, 20)} in ${place}`, event, number),
    ),
  ),
  ...(
    [
      ["1e131071", 8_300],
      ["1e399", 40_000],
      ["1e-399", 40_000],
      ["0.1", 100_000],
      ["123456789012345678901234567890", 15_000],
    ] as const
  ).map(([number, times]) =>
    spliced(
      `${times} times ${number}`,
      anEvent({}, { metadata: "?" }),
      () => `[${`${number},`.repeat(times - 1)}${number}]`,
    ),
  ),
];

const LENGTHS = [1, 254, 255, 256, 6_400, 100_000];
const INVOICE_PLACES = ["id", "customer", "status", "currency"];

export const lengths: readonly Body[] = LENGTHS.flatMap((length) => [
  ...["~", "é", "😀"].flatMap((character) => [
    ...["id", "type", "account", "api_version"].map((field) =>
      json(
        `${field}: ${length} times ${character}`,
        anEvent({ [field]: character.repeat(length) }),
      ),
    ),
    ...INVOICE_PLACES.map((field) =>
      json(
        `invoice.${field}: ${length} times ${character}`,
        anEvent({}, { [field]: character.repeat(length) }),
      ),
    ),
  ]),
  json(`a test id of ${length} zeros`, anEvent({ id: `evt_${"0".repeat(length)}` })),
]);

/** An event of exactly so many bytes. */
export function sized(size: number): Body {
  return {
    name: `${size} bytes`,
    text: () => {
      const padding = size - Buffer.byteLength(JSON.stringify(anEvent({ note: "" })));
      return JSON.stringify(anEvent({ note: "x".repeat(padding) }));
    },
  };
}

const BULK_BYTES = 512 * 1024;

/** Small as text, and much in memory, in jsonb, or to rewrite. */
export const bulk: readonly Body[] = (
  [
    ["[],", "empty arrays"],
    ["{},", "empty objects"],
    ["0,", "zeros"],
    ['"",', "empty texts"],
    ['{"a":0},', "small objects"],
    ['"é😀",', "texts beyond Latin-1"],
    ['"\\u0000",', "texts of U+0000"],
    ['"\\ud800",', "lone surrogates"],
    ['{"\\u0000":1e5},', "objects with all that is rewritten"],
    ["1e5,", "numbers with exponents"],
  ] as const
).map(([piece, name]) => {
  const times = Math.floor(BULK_BYTES / Buffer.byteLength(piece));
  return spliced(
    `512 KiB of ${name}`,
    anEvent({}, { x: "?" }),
    () => `[${piece.repeat(times).slice(0, -1)}]`,
  );
});

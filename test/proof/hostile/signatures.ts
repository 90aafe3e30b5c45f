/** The signature header in every form that it should not have, and in the few that it may. */
import { signature } from "../../local/sign.ts";
import { type Body, bytesOf, type Header, headOf, type Input } from "./input.ts";
import { type Expected, HEAD_TOO_LARGE, INVALID, judgeSigned } from "./judge.ts";

interface Signing {
  /** Now, in whole seconds. */
  readonly t: number;
  /** The right signature at a time; at `t` by default. */
  readonly v1: (t?: number | string) => Promise<string>;
}

type Make = (signing: Signing) => Promise<string | readonly string[]> | string | readonly string[];

const BAD = "0".repeat(64);
/** Every one of the tolerated seconds and then some, since the clock goes on. */
const LONG_S = 310;

const REFUSED: Readonly<Record<string, Make>> = {
  "no header": () => [],
  "an empty one": () => "",
  blanks: () => " \t ",
  "a word": () => "garbage",
  commas: () => ",".repeat(1_000),
  "equals signs": () => "=".repeat(1_000),
  "a time alone": ({ t }) => `t=${t}`,
  "a signature alone": async ({ v1 }) => `v1=${await v1()}`,
  "another scheme": async ({ t, v1 }) => `t=${t},v0=${await v1()}`,
  "a scheme in capitals": async ({ t, v1 }) => `T=${t},V1=${await v1()}`,
  JSON: async ({ t, v1 }) => JSON.stringify({ t, v1: await v1() }),
  "a blank before the signature": async ({ t, v1 }) => `t=${t}, v1=${await v1()}`,
  "a blank within": async ({ t, v1 }) => `t=${t},v1= ${await v1()}`,
  semicolons: async ({ t, v1 }) => `t=${t};v1=${await v1()}`,
  quotes: async ({ t, v1 }) => `t=${t},v1="${await v1()}"`,
  "two times": async ({ t, v1 }) => `t=${t},t=${t},v1=${await v1()}`,
  "two times, the first an old one": async ({ t, v1 }) => `t=1,t=${t},v1=${await v1()}`,
  "no time, rightly signed": async ({ v1 }) => `t=,v1=${await v1("")}`,
  "an old time": async ({ t, v1 }) => `t=${t - LONG_S},v1=${await v1(t - LONG_S)}`,
  "a time to come": async ({ t, v1 }) => `t=${t + LONG_S},v1=${await v1(t + LONG_S)}`,
  "another time than the signed one": async ({ t, v1 }) => `t=${t},v1=${await v1(t - 1)}`,
  ...Object.fromEntries(
    ["abc", "0", "-1", "+1", "1e9", "0x7fffffff", "NaN", "Infinity", "9".repeat(12), "9".repeat(13)]
      .concat("9".repeat(4_000), "2147483648", "-9223372036854775808", "1.5", "\xb2", "٣", "null")
      .map((time): [string, Make] => [
        `the time ${time.slice(0, 20)}, rightly signed`,
        async ({ v1 }) => `t=${latin1(time)},v1=${await v1(time)}`,
      ]),
  ),
  "the time in milliseconds": async ({ t, v1 }) => `t=${t}000,v1=${await v1(`${t}000`)}`,
  "the time with a fraction": async ({ t, v1 }) => `t=${t}.0,v1=${await v1(`${t}.0`)}`,
  "an empty signature": ({ t }) => `t=${t},v1=`,
  "a signature too short": async ({ t, v1 }) => `t=${t},v1=${(await v1()).slice(0, -1)}`,
  "a signature too long": async ({ t, v1 }) => `t=${t},v1=${await v1()}0`,
  "a signature twice in one": async ({ t, v1 }) => `t=${t},v1=${await v1()}${await v1()}`,
  "a signature in capitals": async ({ t, v1 }) => `t=${t},v1=${(await v1()).toUpperCase()}A`,
  "a signature of bytes beyond ASCII": ({ t }) => `t=${t},v1=${"\xe9\xff".repeat(32)}`,
  "a signature of another's secret": async ({ t }) =>
    `t=${t},v1=${await signature("{}", "whsec_other", t)}`,
  "a prototype's name": ({ t }) => `t=${t},__proto__=${BAD},constructor=${BAD}`,
  "10,000 wrong signatures": ({ t }) => `t=${t}${",v1=00000".repeat(10_000)}`,
  "1,500 wrong ones of full length": ({ t }) => `t=${t}${`,v1=${BAD}`.repeat(1_500)}`,
  "100,000 commas": ({ t }) => `t=${t}${",".repeat(100_000)}`,
  "two headers, the first too old": async ({ t, v1 }) => [
    `t=${t - LONG_S},v1=${BAD}`,
    `t=${t},v1=${await v1()}`,
  ],
  "two headers that share it out": async ({ t, v1 }) => [`t=${t}`, `v0=${await v1()}`],
};

const TAKEN: Readonly<Record<string, Make>> = {
  "wrong, then right": async ({ t, v1 }) => `t=${t},v1=${BAD},v1=${await v1()}`,
  "right, then wrong": async ({ t, v1 }) => `t=${t},v1=${await v1()},v1=${BAD}`,
  "right behind 1,000 wrong ones": async ({ t, v1 }) =>
    `t=${t}${`,v1=${BAD}`.repeat(1_000)},v1=${await v1()}`,
  "zeros before the time": async ({ t, v1 }) => `t=00${t},v1=${await v1()}`,
  "the time last": async ({ t, v1 }) => `v1=${await v1()},t=${t}`,
  "other schemes beside it": async ({ t, v1 }) =>
    `v0=${BAD},t=${t},v2=,v1=${await v1()},__proto__=x,\xe9=\xff`,
  "blanks around all of it": async ({ t, v1 }) => `  \t t=${t},v1=${await v1()} \t `,
  "the header twice": async ({ t, v1 }) => {
    const header = `t=${t},v1=${await v1()}`;
    return [header, header];
  },
};

const TOO_LONG: Readonly<Record<string, Make>> = {
  "10,000 signatures of full length": async ({ t, v1 }) =>
    `t=${t}${`,v1=${BAD}`.repeat(10_000)},v1=${await v1()}`,
};

export function signatures(body: Body): Input[] {
  const taken = (): Expected => judgeSigned(bytesOf(body.text()), "billing");
  return [
    ...inputs(body, REFUSED, () => INVALID),
    ...inputs(body, TAKEN, taken),
    ...inputs(body, TOO_LONG, () => HEAD_TOO_LARGE),
  ];
}

function inputs(
  { text }: Body,
  makes: Readonly<Record<string, Make>>,
  expected: () => Expected,
): Input[] {
  return Object.entries(makes).map(([name, make]) => ({
    name: `signature: ${name}`,
    prepare: async (secretOf) => {
      const body = bytesOf(text());
      const t = Math.floor(Date.now() / 1_000);
      const made = await make({ t, v1: (time = t) => signature(body, secretOf("billing"), time) });
      const headers = (typeof made === "string" ? [made] : made).map((value): Header => [
        "Stripe-Signature",
        value,
      ]);
      return { steps: [headOf({ headers, length: body.length }), body], expected: expected() };
    },
  }));
}

/** The bytes that a text has in UTF-8, one character for each. */
function latin1(text: string): string {
  return Buffer.from(text, "utf8").toString("latin1");
}

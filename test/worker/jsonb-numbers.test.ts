/** A number keeps every digit in the row; one too long for a row that can be read becomes a text. */
import { beforeAll, describe, expect, test } from "vitest";
import { store } from "./store-metadata.ts";
import { openTestbed, type Testbed } from "./testbed.ts";

let inbox: Testbed;
beforeAll(async () => void (inbox = await openTestbed()));

/** A long one is named by its ends. */
const named = (number: string): { name: string; number: string } => ({
  number,
  name: number.length < 40 ? number : `${number.slice(0, 9)}… of ${number.length} characters`,
});

describe("a number keeps every digit", () => {
  test.each(
    [
      "9007199254740993",
      "-9007199254740993",
      "12345678901234567890123456789",
      "0.1000000000000000055511151231257827",
      "4200.00",
      "1e3",
      "1.5E+2",
      "2.50e-7",
      "1e22",
      "1e-390",
      "1e399",
      "-1e399",
      "7".repeat(400),
      `-${"7".repeat(400)}`,
      `${"7".repeat(200)}.${"3".repeat(200)}`,
    ].map(named),
  )("$name", async ({ number }) => {
    const { altered, text } = await store(inbox, `{"n":${number}}`);
    const [as] = await inbox.rows("select jsonb_build_object('n', $1::numeric)::text as text", [
      number,
    ]);
    expect({ altered, text }).toEqual({ altered: false, ...as });
  });

  test("so does an integer beside a text that is replaced", async () => {
    const { altered, text } = await store(inbox, '{"n":9007199254740993,"x":"\\u0000","m":1.10}');
    expect(altered).toBe(true);
    expect(text).toContain('"n": 9007199254740993');
    expect(text).toContain('"m": 1.10');
  });
});

describe("a number of more than 400 digits, written without exponent, is stored as its text", () => {
  test.each(
    [
      "7".repeat(401),
      `-${"7".repeat(401)}`,
      `${"7".repeat(200)}.${"3".repeat(201)}`,
      "1e400",
      "-1E+400",
      "1e-400",
      "1e200000",
      "1e-16384",
      "1e-200000",
      "1e99999999999999999999",
      "1e-99999999999999999999",
    ].map(named),
  )("$name", async ({ number }) => {
    expect(await store(inbox, `{"n":${number}}`)).toMatchObject({
      altered: true,
      metadata: { n: number },
    });
  });

  test("8,300 of them make a row that can still be read", async () => {
    const { altered, metadata } = await store(inbox, `[${Array(8_300).fill("1e131071").join()}]`);
    expect(altered).toBe(true);
    expect(metadata).toEqual(Array(8_300).fill("1e131071"));
  });

  test("very many short ones cannot make a row that is too large to read", async () => {
    const many = 50_000;
    const { text, metadata } = await store(inbox, `[${Array(many).fill("1e399").join()},1e2]`);
    expect(text.length).toBeLessThan(3_000_000);
    expect(metadata).toContain("1e399");
    expect(metadata).toContain(100);
  });
});

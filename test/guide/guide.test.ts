/** What the guides show is what runs here, and what they say of it is so. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ROOT } from "../local/run-file.ts";
import { openTestbed } from "../worker/testbed.ts";
import { type Clone, makeClone, type Said } from "./clone.ts";
import { makeMigration } from "./database.ts";
import { blocksOf, slipsOf } from "./markdown.ts";
import { aRefund } from "./refund-events.ts";
import { inTheirClone } from "./their-files.ts";

const guide = await readFile(join(ROOT, "HANDLERS.md"), "utf8");
const endpointsGuide = await readFile(join(ROOT, "ENDPOINTS.md"), "utf8");
const files = await inTheirClone();

/** As one line: what is shown is not indented as it is where it stands. */
const asOneLine = (code: string) => code.replaceAll(/\s+/g, " ");

test.each(blocksOf(guide))("$path has what is shown in line $line", ({ path, code }) => {
  const file = files.find((one) => one.path === path);
  expect(file && asOneLine(file.text).includes(asOneLine(code))).toBe(true);
});

test.each(blocksOf(endpointsGuide))("endpoints are as in line $line", async ({ path, code }) => {
  expect(path).toBe("src/endpoints.ts");
  const worked = await readFile(join(ROOT, "test/guide/endpoints.ts"), "utf8");
  expect(asOneLine(worked)).toContain(asOneLine(code));
});

test("the guide has the blocks and slips that are looked at", () => {
  expect(blocksOf(guide)).toHaveLength(guide.split("```ts").length - 1);
  expect(blocksOf(endpointsGuide)).toHaveLength(endpointsGuide.split("```ts").length - 1);
  expect(slipsOf(guide).map(({ slip }) => slip)).toContain("a driver");
  expect(slipsOf(guide)).toHaveLength(11);
});

test("before it has a handler, a refund is ignored", async () => {
  const inbox = await openTestbed();
  expect(await inbox.deliver(aRefund())).toMatchObject({ status: 200, outcome: "ignored" });
});

test("the migration makes the two tables, and touches no other", async () => {
  const statements = (await makeMigration()).split("--> statement-breakpoint");
  expect(statements.map((statement) => /^\s*CREATE TABLE "\w+"/.exec(statement)?.[0])).toEqual([
    'CREATE TABLE "charge_refunds"',
    expect.stringContaining('CREATE TABLE "credit_notes"'),
  ]);
});

describe("in a clone where the guide was followed", () => {
  const slips = slipsOf(guide);
  let clone: Clone;
  let compiled: Said;
  let linted: Said;

  beforeAll(async () => {
    clone = await makeClone();
    for (const { path, source } of slips) await clone.write(path, source);
    compiled = await clone.run("tsc", "--pretty", "false");
    const theirs = [...files, ...slips].map(({ path }) => path);
    const linting = theirs.filter((path) => path.startsWith("src/"));
    const flags = ["--type-aware", "--deny-warnings", "--no-ignore", "--format=json"];
    linted = await clone.run("oxlint", ...flags, ...linting);
  });
  afterAll(() => clone.remove());

  test("the compiler, the linter and the formatter find nothing but the slips", async () => {
    const found = [...compiled.text.matchAll(/^src\/\S+\.ts(?=\()/gm)].map(([path]) => path);
    const diagnostics: { readonly filename: string }[] = JSON.parse(linted.text).diagnostics;
    for (const { filename } of diagnostics) found.push(filename);
    expect(found.length).toBeGreaterThan(0);
    expect(found.filter((path) => !slips.some((slip) => slip.path === path))).toEqual([]);
    const sources = files.map(({ path }) => path).filter((path) => path.startsWith("src/"));
    expect(await clone.run("oxfmt", "--check", ...sources)).toMatchObject({ failed: false });
  });

  test.each(slips)("$slip is told: $told", ({ path, told }) => {
    const ofCompiler = compiled.text.split(/^(?=src\/)/m).filter((one) => one.startsWith(path));
    const diagnostics: { readonly filename: string }[] = JSON.parse(linted.text).diagnostics;
    const ofLinter = diagnostics.filter(({ filename }) => filename === path);
    const said = [...ofCompiler, ...ofLinter.map((one) => Object.values(one).join("\n"))];
    expect(said.join("\n")).toContain(told);
  });
});

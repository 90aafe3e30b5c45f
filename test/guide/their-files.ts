/** The guide's files, as they are called in the clone of somebody who follows it. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { ROOT } from "../local/run-file.ts";

export interface TheirFile {
  /** Relative to the clone. */
  readonly path: string;
  /** With imports that lead from there. */
  readonly text: string;
}

const HANDLERS = ["schema", "handlers", "consequences"].map((name) => ({
  ours: `test/guide/refunds/${name}.ts`,
  path: `src/refunds/${name}.ts`,
}));
const TESTS = ["refund-events", "refunds.test", "refunds-told.test"].map((name) => ({
  ours: `test/guide/${name}.ts`,
  path: `test/refunds/${name}.ts`,
}));

export async function inTheirClone(): Promise<readonly TheirFile[]> {
  const moved = [...HANDLERS, ...TESTS].map(async ({ ours, path }) => ({
    path,
    text: (await textOf(ours))
      .replaceAll('"../../../src/', '"../')
      .replaceAll('"./refunds/', '"../../src/refunds/')
      // Their template has the tables, and their endpoints the handlers.
      .replaceAll("openTestbed(await withRefunds())", "openTestbed()"),
  }));
  return [...(await Promise.all(moved)), await theirEndpoints()];
}

/** `src/endpoints.ts` with the lines in it that `with-refunds.ts` has. */
async function theirEndpoints(): Promise<TheirFile> {
  const path = "src/endpoints.ts";
  const [shipped, ours] = await Promise.all([textOf(path), textOf("test/guide/with-refunds.ts")]);
  const lineOf = (start: string): string => {
    const line = ours.split("\n").find((one) => one.includes(start));
    if (line === undefined) throw new Error(`No line with ${start}`);
    return line;
  };
  const handlers = "    handlers: invoiceHandlers,";
  const consequences = /export const consequences: .*/;
  const settings = 'import type { ReceiveMode, Settings } from "./config.ts";';
  if (![handlers, settings].every((line) => shipped.includes(line)) || !consequences.test(shipped))
    throw new Error(`${path} is not as shipped: the guide is tried no more, remove test/guide.`);
  const imports = [lineOf("import { refundConsequences"), lineOf("import { refundHandlers")];
  const text = shipped
    .replace(handlers, lineOf("handlers: {"))
    .replace(consequences, lineOf("export const consequences"))
    .replace(settings, [settings, ...imports].join("\n"));
  return { path, text };
}

function textOf(path: string): Promise<string> {
  return readFile(join(ROOT, path), "utf8");
}

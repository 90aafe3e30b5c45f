/** A handler may answer and read as it likes: it cannot end the transaction that it works in. */
import { execFile } from "node:child_process";
import { mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { sql } from "drizzle-orm";
import { describe, expect, test } from "vitest";
import { invoices } from "../../src/db/schema.ts";
import { ROOT } from "../local/run-file.ts";
import {
  billing,
  book,
  bookAfter,
  bookWith,
  NOTHING_BOOKED,
  ONE_BOOKING,
  progress,
} from "../worker/disturbances.ts";
import { anInvoiceEvent, openTestbed } from "../worker/testbed.ts";

class SavepointGivenUp extends Error {}

const note = (id: string) => sql`insert into invoices (id, status) values (${id}, 'draft')`;

describe.each(["on", "off"])("with PIPELINE=%s", (PIPELINE) => {
  const env = { PIPELINE };

  describe("a transaction inside the handler's", () => {
    test("is kept with the rest", async () => {
      const endpoints = bookAfter((tx) =>
        tx.transaction((inner) => inner.execute(note("in_inner"))),
      );
      const inbox = await openTestbed({ endpoints, env });
      expect(await inbox.deliver(anInvoiceEvent())).toMatchObject({ outcome: "processed" });
      expect(await inbox.books()).toEqual({ ...ONE_BOOKING, invoices: 2 });
    });

    test("that is rolled back takes nothing else with it", async () => {
      const endpoints = bookAfter(async (tx) => {
        await tx.execute(note("in_outer"));
        const inner = tx.transaction(async (nested) => {
          await nested.execute(note("in_inner"));
          throw new SavepointGivenUp();
        });
        await expect(inner).rejects.toThrow(SavepointGivenUp);
      });
      const inbox = await openTestbed({ endpoints, env });
      const event = anInvoiceEvent("invoice.paid", { id: "in_paid" });
      expect(await inbox.deliver(event)).toMatchObject({ status: 200, outcome: "processed" });
      expect(await inbox.rows("select id from invoices order by id")).toEqual([
        { id: "in_outer" },
        { id: "in_paid" },
      ]);
    });

    test("does not commit ours: what fails behind it leaves nothing of either", async () => {
      const endpoints = bookAfter(async (tx) => {
        await tx.transaction((inner) => inner.execute(note("in_inner")));
        throw new Error("It fails after the savepoint.");
      });
      const inbox = await openTestbed({ endpoints, env });
      const event = anInvoiceEvent();
      expect(await inbox.deliver(event)).toMatchObject({ status: 500, outcome: "failed" });
      expect(await inbox.books()).toEqual(NOTHING_BOOKED);
      expect(await progress(inbox, event.id)).toMatchObject({ outcome: null, attempts: 1 });
    });
  });

  test("a handler that swallows an SQL error and goes on has failed", async () => {
    const endpoints = bookAfter((tx) => tx.execute(sql`select 1 / 0`).catch(() => undefined));
    const inbox = await openTestbed({ endpoints, env });
    const event = anInvoiceEvent();
    expect(await inbox.deliver(event)).toMatchObject({ status: 500, outcome: "failed" });
    expect(await inbox.books()).toEqual(NOTHING_BOOKED);
    expect(await progress(inbox, event.id)).toMatchObject({ outcome: null, attempts: 1 });
  });

  test.each(["commit", "rollback", "rollback; begin"])(
    "a handler that sends `%s` itself loses no event and books none twice",
    async (statement) => {
      const endpoints = bookAfter(async (tx, call) => {
        if (call === 1) await tx.execute(sql.raw(statement));
      });
      const inbox = await openTestbed({ endpoints, env });
      const event = anInvoiceEvent();
      expect(await inbox.deliver(event)).toMatchObject({ status: 500 });
      expect(await inbox.books()).toMatchObject({ entries: 0, messages: 0 });
      expect(await inbox.deliver(event)).toMatchObject({ status: 200, outcome: "processed" });
      expect(await inbox.books()).toEqual(ONE_BOOKING);
    },
  );

  test.each(["commit", "rollback", "/* so far */ End"])(
    "a handler that returns `%s` among its writes loses no event and books none twice",
    async (statement) => {
      let given = 0;
      const endpoints = bookWith(() => (given++ === 0 ? [sql.raw(statement)] : []), "first");
      const inbox = await openTestbed({ endpoints, env });
      const event = anInvoiceEvent();
      expect(await inbox.deliver(event)).toMatchObject({ status: 500 });
      expect(await inbox.books()).toMatchObject({ entries: 0, messages: 0 });
      expect(await inbox.deliver(event)).toMatchObject({ status: 200, outcome: "processed" });
      expect(await inbox.books()).toEqual(ONE_BOOKING);
    },
  );
});

describe("a handler that answers", () => {
  test.each<[string, unknown]>([
    ["with a text", "booked"],
    ["with a list that holds something else than writes", [sql`select 1`, "booked"]],
    ["with a list that holds a promise of a write", [Promise.resolve(sql`select 1`)]],
    ["with one write outside a list", sql`select 1`],
    ["with null inside its list", [null]],
  ])("%s has failed", async (_, answer) => {
    const handlers = { "invoice.paid": () => answer };
    // @ts-expect-error -- The types allow none of these.
    const inbox = await openTestbed({ endpoints: billing(handlers) });
    const event = anInvoiceEvent();
    expect(await inbox.deliver(event)).toMatchObject({ status: 500, outcome: "failed" });
    expect(await progress(inbox, event.id)).toMatchObject({
      outcome: null,
      last_error: "TypeError",
    });
  });

  test.each([
    ["nothing", () => undefined],
    ["an empty list", () => []],
    ["a promise of nothing", () => Promise.resolve()],
  ])("with %s has processed its event", async (_, handler) => {
    const inbox = await openTestbed({ endpoints: billing({ "invoice.paid": handler }) });
    const event = anInvoiceEvent();
    expect(await inbox.deliver(event)).toMatchObject({ status: 200, outcome: "processed" });
    expect(await inbox.books()).toEqual(NOTHING_BOOKED);
    expect(await inbox.deliver(event)).toMatchObject({ status: 200, outcome: "duplicate" });
  });

  test("with a promise of writes has them executed", async () => {
    const endpoints = billing({
      "invoice.paid": (event, tx) => Promise.resolve(book(event, tx)),
    });
    const inbox = await openTestbed({ endpoints });
    expect(await inbox.deliver(anInvoiceEvent())).toMatchObject({ outcome: "processed" });
    expect(await inbox.books()).toEqual(ONE_BOOKING);
  });

  test("without a write that it built has not executed it", async () => {
    const endpoints = billing({
      "invoice.paid": (event, tx) => {
        tx.delete(invoices).getSQL();
        return book(event, tx);
      },
    });
    const inbox = await openTestbed({ endpoints });
    await inbox.rows("insert into invoices (id, status) values ('in_other', 'open')");
    expect(await inbox.deliver(anInvoiceEvent())).toMatchObject({ outcome: "processed" });
    expect(await inbox.books()).toEqual({ ...ONE_BOOKING, invoices: 2 });
  });
});

test("the linter finds a write that is built and neither returned nor awaited", async () => {
  const forgotten = await lint("tx.delete(invoices);");
  expect(forgotten).toMatch(/no-floating-promises/);
  expect(forgotten).toMatch(/handler\.ts:5/);
  expect(await lint("await tx.delete(invoices);")).toBe("");
});

/** What the project's linter says of a handler with this line in it. */
async function lint(line: string): Promise<string> {
  const folder = join(ROOT, ".local", `lint-${crypto.randomUUID()}`);
  await mkdir(folder, { recursive: true });
  const file = join(folder, "handler.ts");
  const handler = [
    'import type { Tx } from "../../src/db/connect.ts";',
    'import { invoices } from "../../src/db/schema.ts";',
    "",
    "export async function handle(tx: Tx): Promise<void> {",
    `  ${line}`,
    "  await Promise.resolve();",
    "}",
  ];
  try {
    await writeFile(file, handler.join("\n"));
    const oxlint = join(ROOT, "node_modules", ".bin", "oxlint");
    const flags = ["--type-aware", "--deny-warnings", "--no-ignore", "--format=unix"];
    // With this Node, whatever a machine's own is.
    await promisify(execFile)(process.execPath, [oxlint, ...flags, file], { cwd: ROOT });
    return "";
  } catch (error) {
    return Object.assign({ stdout: "" }, error).stdout;
  } finally {
    await rm(folder, { recursive: true });
  }
}

/** What several events write is written in few statements, each row once and in its turn. */
import { type SQL, sql } from "drizzle-orm";
import { PgDialect } from "drizzle-orm/pg-core";
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Write } from "../../src/db/connect.ts";
import { mergeWrites, type RowStatement, RowWrite } from "../../src/db/row-write.ts";
import { openTestbed } from "../worker/testbed.ts";
import { openConnection } from "./holders.ts";

interface Line {
  readonly key: string;
  /** Of which event, and which of its writes. */
  readonly by: string;
}

function statementOf(name: string): RowStatement<Line> {
  return {
    keyOf: ({ key }) => key,
    write: (rows) => sql`${sql.raw(name)} ${JSON.stringify(rows)}`,
  };
}

const RED = statementOf("red");
const BLUE = statementOf("blue");
const dialect = new PgDialect();

// No write here is ever executed.
// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- Only execution needs one.
const NO_TX = {} as ConstructorParameters<typeof RowWrite>[0];

const row = (statement: RowStatement<Line>, key: string, by = key): RowWrite<Line> =>
  new RowWrite(NO_TX, statement, { key, by });
const plain = (by: string): SQL => sql`plain ${JSON.stringify([{ key: "", by }])}`;

/** Each statement as its name and the rows that it writes. */
function read(writes: readonly Write[]): { name: string; lines: readonly Line[] }[] {
  return writes.map((write) => {
    const { sql: text, params } = dialect.sqlToQuery(write.getSQL());
    return { name: text.split(" ")[0] ?? "", lines: JSON.parse(String(params[0])) };
  });
}

/** As words: the name, and what was written by whom. */
const told = (writes: readonly Write[]): string[] =>
  read(writes).map(({ name, lines }) => `${name} ${lines.map(({ by }) => by).join(" ")}`);

describe("what several events write", () => {
  test("of different rows is one statement, its rows sorted by their keys", () => {
    expect(told(mergeWrites([[row(RED, "c")], [row(RED, "a")], [row(RED, "b")]]))).toEqual([
      "red a b c",
    ]);
  });

  test("of the same row is one statement for each, in the order of the events", () => {
    const writes = mergeWrites([
      [row(RED, "a", "first")],
      [row(RED, "a", "second")],
      [row(RED, "b")],
      [row(RED, "a", "third")],
    ]);
    expect(told(writes)).toEqual(["red first b", "red second", "red third"]);
  });

  test("by different statements is not mixed", () => {
    const same = { ...RED };
    const writes = [[row(RED, "a")], [row(BLUE, "b")], [row(RED, "c")], [row(same, "d")]];
    expect(told(mergeWrites(writes))).toEqual(["red a c", "blue b", "red d"]);
  });

  test("by queries of their own is left as it is, each once", () => {
    expect(told(mergeWrites([[plain("one")], [row(RED, "a")], [plain("one")]]))).toEqual([
      "plain one",
      "plain one",
      "red a",
    ]);
  });

  test("comes behind what the same event writes before it", () => {
    const writes = mergeWrites([
      [row(RED, "a", "1st"), plain("2nd"), row(BLUE, "a", "3rd")],
      [row(BLUE, "a", "1st"), row(RED, "b", "2nd")],
    ]);
    const order = told(writes);
    expect(order.toSorted()).toEqual(["blue 1st", "blue 3rd", "plain 2nd", "red 1st", "red 2nd"]);
    const one = ["red 1st", "plain 2nd", "blue 3rd"];
    const other = ["blue 1st", "red 2nd"];
    for (const own of [one, other]) {
      expect(order.filter((statement) => own.includes(statement))).toEqual(own);
    }
  });

  test("is nothing when there is nothing", () => {
    expect(mergeWrites([])).toEqual([]);
    expect(mergeWrites([[], []])).toEqual([]);
  });
});

const write = fc.record({
  kind: fc.constantFrom("red", "blue", "plain"),
  key: fc.constantFrom("a", "b", "c"),
});

test("however much it is, every row is written once, no statement writes a row twice, and none overtakes", () => {
  fc.assert(
    fc.property(fc.array(fc.array(write, { maxLength: 4 }), { maxLength: 6 }), (events) => {
      const merged = read(
        mergeWrites(
          events.map((writes, event) =>
            writes.map(({ kind, key }, position) => {
              const by = `${event} ${position}`;
              return kind === "plain" ? plain(by) : row(kind === "red" ? RED : BLUE, key, by);
            }),
          ),
        ),
      );
      for (const { lines } of merged) {
        const keys = lines.map(({ key }) => key);
        expect(keys).toEqual([...new Set(keys)].toSorted());
      }
      const all = merged.flatMap(({ lines }) => lines.map(({ by }) => by));
      const given = events.flatMap((writes, event) => writes.map((_, at) => `${event} ${at}`));
      expect(all.toSorted()).toEqual(given.toSorted());
      const places = new Map(
        merged.flatMap(({ lines }, place) => lines.map(({ by }) => [by, place] as const)),
      );
      for (const [event, writes] of events.entries()) {
        const own = writes.map((_, at) => places.get(`${event} ${at}`) ?? -1);
        expect(own).toEqual([...own].toSorted((a, b) => a - b));
      }
      // Named as the events wrote them.
      for (const { name, lines } of merged) {
        for (const { by } of lines) {
          const [event = 0, at = 0] = by.split(" ").map(Number);
          expect(events[event]?.[at]?.kind).toBe(name);
        }
      }
    }),
  );
});

test("awaited, a write is executed at once, in the transaction of its own", async () => {
  const inbox = await openTestbed();
  const db = await openConnection(inbox.databaseUrl);
  await Promise.all(db.send([{ text: "begin" }]));
  const { tx, end } = db.openTx(() => undefined);
  const statement: RowStatement<string> = {
    keyOf: String,
    write: (ids) => sql`insert into invoices (id, status)
      select value, 'open' from jsonb_array_elements_text(${JSON.stringify(ids)}::text::jsonb)`,
  };
  await new RowWrite(tx, statement, "in_awaited");
  const { rows } = await tx.execute(sql`select id from invoices`);
  expect(rows).toEqual([{ id: "in_awaited" }]);
  end();
  await expect(new RowWrite(tx, statement, "in_late")).rejects.toThrow();
  await Promise.all(db.send([{ text: "rollback" }]));
  expect(await inbox.books()).toMatchObject({ invoices: 0 });
});

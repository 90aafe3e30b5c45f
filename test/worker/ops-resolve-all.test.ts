/** All open discrepancies of a kind, resolved with one note: those that were seen, on record. */
import { describe, expect, test } from "vitest";
import { actions, anOperator, type Operator } from "./operator.ts";

const PATH = "/ops/api/discrepancies/resolve";
const KIND = "paid_after_void";
const COUNT = `/ops/api/discrepancies/resolvable?kind=${KIND}`;
const NOTE = "all of them refunded";
const LATER = "2099-01-01T00:00:00Z";

/** `in_1` is the one found last. */
const found = async ({ inbox }: Operator, count: number, kind = KIND): Promise<void> => {
  await inbox.rows(
    `insert into discrepancies (kind, object_id, detail, found_at)
     select $1::text, 'in_' || n, '{}', now() - n * interval '1 min' from generate_series(1, $2::int) n`,
    [kind, count],
  );
};

const open = async ({ inbox }: Operator): Promise<unknown[]> => {
  const rows = await inbox.rows(
    "select kind || ' ' || object_id as what from discrepancies where resolved_at is null order by found_at",
  );
  return rows.map(({ what }) => what);
};

describe("all discrepancies of a kind", () => {
  test("are counted first, then resolved with one note, and no others; that is on record once", async () => {
    const operator = await anOperator();
    await found(operator, 3);
    await found(operator, 2, "status_differs");
    const { get, send, inbox } = operator;
    const counted = (await get(COUNT)).body;
    expect(counted).toEqual({
      count: 3,
      more: false,
      found_until: expect.any(String),
      last_id: 1,
    });
    const asked = { kind: KIND, note: NOTE, count: 3, found_until: counted.found_until };
    expect((await send(PATH, asked)).body).toEqual({ resolved: 3, left: 0, most_at_once: 5_000 });
    expect(await open(operator)).toEqual(["status_differs in_2", "status_differs in_1"]);
    expect(
      await inbox.rows(
        "select distinct kind, resolution from discrepancies where resolved_at is not null",
      ),
    ).toEqual([{ kind: KIND, resolution: NOTE }]);
    expect(await actions(operator)).toEqual([
      {
        operator: "Ada",
        via: "token",
        action: "resolve_discrepancy",
        subject: `discrepancies of kind ${KIND}`,
        why: NOTE,
        affected: 3,
      },
    ]);
  });

  test("are as many as were agreed to, the oldest first", async () => {
    const operator = await anOperator();
    await found(operator, 5);
    const asked = { kind: KIND, note: NOTE, count: 2, found_until: LATER };
    expect((await operator.send(PATH, asked)).body).toMatchObject({ resolved: 2, left: 3 });
    expect(await open(operator)).toEqual([3, 2, 1].map((n) => `${KIND} in_${n}`));
    expect((await actions(operator)).map(({ affected }) => affected)).toEqual([2]);
  });

  test("are resolved in bounded transactions", async () => {
    const operator = await anOperator();
    await found(operator, 5_002);
    const asked = { kind: KIND, note: NOTE, count: 5_002, found_until: LATER };
    expect((await operator.send(PATH, asked)).body).toMatchObject({ resolved: 5_000, left: 2 });
    expect(await open(operator)).toEqual([`${KIND} in_2`, `${KIND} in_1`]);
  });

  test("are those that were counted: what is found then, or found again, stays open", async () => {
    const operator = await anOperator();
    await found(operator, 3);
    const { get, send, inbox } = operator;
    const { count, found_until } = (await get(COUNT)).body;
    await inbox.rows(
      "update discrepancies set found_at = $1::timestamptz + interval '1 ms' where object_id = 'in_3'",
      [found_until],
    );
    await inbox.rows(
      `insert into discrepancies (kind, object_id, detail, found_at)
       values ($1, 'in_later', '{}', $2::timestamptz + interval '2 ms')`,
      [KIND, found_until],
    );
    const asked = { kind: KIND, note: NOTE, count, found_until };
    expect((await send(PATH, asked)).body).toMatchObject({ resolved: 2, left: 2 });
    expect(await open(operator)).toEqual([`${KIND} in_3`, `${KIND} in_later`]);
  });

  test("are the last one, too, to the microsecond at which it was found", async () => {
    const operator = await anOperator();
    const { get, send, inbox } = operator;
    await inbox.rows(
      "insert into discrepancies (kind, object_id, detail, found_at) values ($1, 'in_1', '{}', '2026-11-29 08:30:00.123999Z')",
      [KIND],
    );
    const { count, found_until } = (await get(COUNT)).body;
    const asked = { kind: KIND, note: NOTE, count, found_until };
    expect((await send(PATH, asked)).body).toMatchObject({ resolved: 1, left: 0 });
  });

  test("resolved before keep their note, and what changes nothing is not on record", async () => {
    const operator = await anOperator();
    await found(operator, 2);
    const asked = { kind: KIND, note: NOTE, count: 2, found_until: LATER };
    await operator.send(PATH, asked);
    const again = await operator.send(PATH, { ...asked, note: "again" });
    expect(again).toMatchObject({ status: 200, body: { resolved: 0, left: 0 } });
    expect(await operator.inbox.rows("select distinct resolution from discrepancies")).toEqual([
      { resolution: NOTE },
    ]);
    expect(await actions(operator)).toHaveLength(1);
  });

  test("of which there is none are counted, too", async () => {
    const { get } = await anOperator();
    expect((await get(COUNT)).body).toMatchObject({ count: 0, found_until: null, last_id: null });
  });

  test("are resolved by two at once without one being counted twice", async () => {
    const operator = await anOperator();
    await found(operator, 200);
    const asked = { kind: KIND, note: NOTE, count: 200, found_until: LATER };
    const said = await Promise.all([1, 2, 3].map(() => operator.send(PATH, asked)));
    expect(said.reduce((sum, { body }) => sum + Number(body.resolved), 0)).toBe(200);
    const recorded = await actions(operator);
    expect(recorded.reduce((sum, { affected }) => sum + Number(affected), 0)).toBe(200);
  });
});

test("those of one moment are told apart by their id", async () => {
  const operator = await anOperator();
  await found(operator, 3);
  await operator.inbox.rows("update discrepancies set found_at = now()");
  const { found_until } = (await operator.get(COUNT)).body;
  const asked = { kind: KIND, note: NOTE, count: 3, found_until, last_id: 2 };
  expect((await operator.send(PATH, asked)).body).toMatchObject({ resolved: 2, left: 1 });
});

describe("refused is", () => {
  const asked = { kind: KIND, note: NOTE, count: 1, found_until: LATER };

  test.each([
    { wrong: { kind: "unheard_of" }, named: "kind: must be paid_after_void or" },
    { wrong: { kind: undefined }, named: "kind: must be" },
    { wrong: { note: undefined }, named: "note: must say why" },
    { wrong: { note: "  " }, named: "note: must say why" },
    { wrong: { count: 0 }, named: "count: must be a whole number from 1" },
    { wrong: { count: 1.5 }, named: "count: must be a whole number" },
    { wrong: { count: undefined }, named: "count: must be a whole number" },
    { wrong: { found_until: undefined }, named: "found_until: must be a day or a time" },
    { wrong: { found_until: "yesterday" }, named: "found_until: must be a day or a time" },
    { wrong: { id: 1 }, named: "id: is not known here" },
  ])("$wrong, by name", async ({ wrong, named }) => {
    const operator = await anOperator();
    await found(operator, 1);
    const { status, body } = await operator.send(PATH, { ...asked, ...wrong });
    expect(status).toBe(400);
    expect(body.error).toContain(named);
    expect(await open(operator)).toHaveLength(1);
    expect(await actions(operator)).toEqual([]);
  });

  test.each(["", "?kind=unheard_of", `?kind=${KIND}&open=true`])("to count %j", async (query) => {
    const { get } = await anOperator();
    expect((await get(`/ops/api/discrepancies/resolvable${query}`)).status).toBe(400);
  });
});

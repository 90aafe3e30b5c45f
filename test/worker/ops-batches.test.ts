/** What was done is told by its records: the first and the last of them, and what they add up to. */
import { expect, test } from "vitest";
import type { Connection } from "../../src/db/connect.ts";
import { withConnection } from "../../src/db/with-connection.ts";
import {
  requeueEvents,
  resolveDiscrepancies,
  resolveDiscrepancy,
} from "../../src/operate/actions.ts";
import { aVisitor } from "./logged-in.ts";
import { anOperator, type Operator, parked, UNUSABLE, WHY } from "./operator.ts";

const TIMEOUTS = { lockTimeoutMs: 3_000, statementTimeoutMs: 8_000 };
const BY = { operator: "Ada", via: "cli", why: WHY } as const;
const LATER = new Date("2099-01-01");

function on<T>({ inbox }: Operator, work: (db: Connection) => Promise<T>): Promise<T> {
  const database = { connectionString: inbox.databaseUrl, pipeline: true };
  return withConnection(database, { deadlineMs: 9_000, afterwards: () => undefined }, ({ db }) =>
    work(db),
  );
}

/** So that no id is the number of rows by chance. */
async function others({ inbox }: Operator, count: number): Promise<void> {
  await inbox.rows(
    `insert into operator_actions (operator, via, action, subject, why, affected)
     select 'Grace', 'cli', 'requeue_events', 'others', 'others', 1 from generate_series(1, $1::int)`,
    [count],
  );
}

const recordIds = async ({ inbox }: Operator, affected: number) =>
  (
    await inbox.rows(
      "select id::int, affected from operator_actions where operator = 'Ada' and affected = $1",
      [affected],
    )
  ).map(({ id }) => id);

test("requeueing gives the id of its record, and none where nothing was changed", async () => {
  const operator = await anOperator();
  await parked(operator, 3);
  await others(operator, 7);
  const requeueAll = () =>
    on(operator, (db) => requeueEvents(db, { reason: UNUSABLE }, 9, BY, TIMEOUTS));
  const subject = `events parked with ${UNUSABLE}`;
  expect(await requeueAll()).toEqual({ affected: 3, records: [8, 8], subject });
  expect(await recordIds(operator, 3)).toEqual([8]);
  expect(await requeueAll()).toEqual({ affected: 0, records: null, subject });
});

test("so does resolving: one, or all of a kind", async () => {
  const operator = await anOperator();
  await others(operator, 4);
  await operator.inbox.rows(
    `insert into discrepancies (kind, object_id, detail)
     select 'paid_after_void', 'in_' || n, '{}' from generate_series(1, 3) n`,
  );
  const resolveOne = (id: number) =>
    on(operator, (db) => resolveDiscrepancy(db, { id, foundAt: null }, BY, TIMEOUTS));
  const subject = "discrepancy 2";
  expect(await resolveOne(2)).toEqual({ affected: 1, records: [5, 5], subject });
  expect(await resolveOne(2)).toEqual({ affected: 0, records: null, subject });
  expect(await resolveOne(99)).toBe("unknown");
  const rest = await on(operator, (db) =>
    resolveDiscrepancies(
      db,
      { kind: "paid_after_void", foundUntil: LATER, lastId: null },
      9,
      BY,
      TIMEOUTS,
    ),
  );
  expect(rest).toMatchObject({ affected: 2, records: [6, 6] });
  expect(await recordIds(operator, 2)).toEqual([6]);
});

test("a form takes batch after batch, and leads to the sum of its records", async () => {
  const operator = await anOperator();
  await parked(operator, 5_003);
  await others(operator, 2);
  const { see, submit } = await aVisitor(operator);
  const asked = { reason: UNUSABLE, count: "5002", why: WHY };
  const { status, headers } = await submit("/ops/events/requeue", asked);
  expect(status).toBe(303);
  expect(headers.get("location")).toBe("/ops/review?done=3-4");
  expect((await see("/ops/review?done=3-4")).text).toContain("5,002 events were requeued");
  expect((await see("/ops/review?done=4-4")).text).toContain("2 events were requeued");
  expect(
    await operator.inbox.rows(
      "select affected, why from operator_actions where id > 2 order by id",
    ),
  ).toEqual([
    { affected: 5_000, why: WHY },
    { affected: 2, why: WHY },
  ]);
});

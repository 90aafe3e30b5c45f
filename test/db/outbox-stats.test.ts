/** What waits to leave, what has left and is not done, and what needs review, each with its age. */
import { expect, test } from "vitest";
import { readNow } from "../../src/operate/figures.ts";
import { openTestbed } from "../worker/testbed.ts";
import { openConnection } from "./holders.ts";

const TIMEOUTS = { lockTimeoutMs: 3_000, statementTimeoutMs: 5_000 };

test("an empty outbox has nothing to tell", async () => {
  const inbox = await openTestbed();
  const db = await openConnection(inbox.databaseUrl);
  expect((await readNow(db, TIMEOUTS)).outbox).toEqual({
    waiting: { count: 0, more: false },
    oldestWaitingSeconds: null,
    notDone: { count: 0, more: false },
    oldestNotDoneSeconds: null,
    messagesInReview: [],
    callsInReview: [],
  });
});

test("each message is counted where it is, and the oldest tells the age", async () => {
  const inbox = await openTestbed();
  await inbox.rows(`
    insert into outbox (aggregate_type, aggregate_id, event_type, payload, created_at,
      published_at, done_at, parked_at, last_error)
    select 'Invoice', 'in_' || n, 'Event', '{}', now() - n * interval '1 minute',
      case when n between 3 and 6 then now() - n * interval '1 minute' end,
      case when n = 6 then now() end, case when n > 6 then now() end,
      case when n > 6 then 'TypeError' end
    from generate_series(1, 8) as n`);
  await inbox.rows(`
    insert into call_journal (key, message_id, state, attempts, available_at, parked_at, last_error)
    values ('a', 3, 'parked', 1, now(), now(), 'Uncertain'), ('b', 4, 'calling', 1, now(), null, null)`);
  const db = await openConnection(inbox.databaseUrl);
  expect((await readNow(db, TIMEOUTS)).outbox).toEqual({
    waiting: { count: 2, more: false },
    oldestWaitingSeconds: expect.closeTo(120, -1),
    notDone: { count: 2, more: false },
    oldestNotDoneSeconds: expect.closeTo(300, -1),
    messagesInReview: [{ reason: "TypeError", count: 2 }],
    callsInReview: [{ reason: "Uncertain", count: 1 }],
  });
});

/**
 * A claim right after a burst, of which the planner's statistics know nothing yet: it reads about as
 * much as it claims. Told by the pages that it touches, which are the same on any machine.
 */
import { expect, test } from "vitest";
import { Client } from "pg";
import type { Write } from "../../src/db/connect.ts";
import {
  type Claim,
  claimDue,
  mark,
  markAll,
  markOrFail,
  readClaimed,
  release,
} from "../../src/inbox/transitions.ts";
import { claimMessages } from "../../src/outbox/messages.ts";
import { openTestbed, type Testbed } from "../worker/testbed.ts";
import { openConnection, openHolder } from "./holders.ts";

const NOBODY: Claim = { endpoint: "", eventId: "", fence: 0 };
const BURST = 10_000;
const CLAIM = 50;
/** For a row: its indexes, its old and its new version. Through all of the burst it would be 10,000s. */
const MOST_PAGES_PER_ROW = 40;

const BEGIN = "begin; set local stripe_inbox.transaction = 'open'";

async function pagesOf(inbox: Testbed, write: Write): Promise<{ rows: number; pages: number }> {
  const { text, values = [] } = (await openConnection(inbox.databaseUrl)).compile(write);
  const client = new Client({ connectionString: inbox.databaseUrl });
  await client.connect();
  try {
    // What a session has to read of the catalogs, once, is not the statement's.
    await client.query(BEGIN);
    await client.query(text, [...values]);
    await client.query(`rollback; ${BEGIN}`);
    const { rows } = await client.query(`explain (analyze, buffers, format json) ${text}`, [
      ...values,
    ]);
    const plan = rows[0]["QUERY PLAN"][0].Plan;
    return {
      rows: plan["Actual Rows"],
      pages: plan["Shared Hit Blocks"] + plan["Shared Read Blocks"],
    };
  } finally {
    await client.end();
  }
}

test("of messages, each of an invoice of its own", async () => {
  const inbox = await openTestbed();
  await inbox.rows("alter table outbox set (autovacuum_enabled = false)");
  const fill = `insert into outbox (aggregate_type, aggregate_id, event_type, payload, published_at, done_at)
    select 'Invoice', 'in_' || $1 || n, 'InvoicePaymentBooked', '{}', $3::timestamptz, $3
    from generate_series(1, $2::int) n`;
  await inbox.rows(fill, ["before", 500, new Date()]);
  await inbox.rows("analyze outbox");
  await inbox.rows(fill, ["burst", BURST, null]);
  const { rows, pages } = await pagesOf(inbox, claimMessages(CLAIM, 60));
  expect(rows).toBe(CLAIM);
  expect(pages).toBeLessThan(CLAIM * MOST_PAGES_PER_ROW);
});

test.each(["fresh", "suspects"] as const)("of events: %s", async (which) => {
  const inbox = await openTestbed();
  await inbox.rows("alter table webhook_inbox set (autovacuum_enabled = false)");
  const fill = `insert into webhook_inbox
      (endpoint, event_id, event_type, payload, attempts, available_at, processed_at, outcome)
    select 'billing', 'evt_' || $1 || n, 'invoice.paid', '{}', $4::int, now() - n * interval '1 ms',
      $3::timestamptz, case when $3 is not null then 'processed' end
    from generate_series(1, $2::int) n`;
  const attempts = which === "suspects" ? 1 : 0;
  await inbox.rows(fill, ["before", 500, new Date(), 1]);
  await inbox.rows("analyze webhook_inbox");
  await inbox.rows(fill, ["burst", BURST, null, attempts]);
  const { rows, pages } = await pagesOf(inbox, claimDue(which, CLAIM, 60));
  expect(rows).toBe(CLAIM);
  expect(pages).toBeLessThan(CLAIM * MOST_PAGES_PER_ROW);
});

test.each([
  ["marked together", markAll, 50],
  ["read", readClaimed, 50],
  ["given back", (claims: readonly Claim[]) => release(claims), 50],
  ["marked alone", ([one]: readonly Claim[]) => mark(one ?? NOBODY), 1],
  ["marked, or refused", ([one]: readonly Claim[]) => markOrFail(one ?? NOBODY), 1],
] as const)("of claimed events that are %s", async (_, writeOf, claimed) => {
  const inbox = await openTestbed();
  await inbox.rows("alter table webhook_inbox set (autovacuum_enabled = false)");
  const fill = `insert into webhook_inbox (endpoint, event_id, event_type, payload, processed_at, outcome)
    select 'billing', 'evt_' || $1 || n, 'invoice.paid', '{}', $3::timestamptz,
      case when $3 is not null then 'processed' end
    from generate_series(1, $2::int) n`;
  await inbox.rows(fill, ["before", 500, new Date()]);
  await inbox.rows("analyze webhook_inbox");
  await inbox.rows(fill, ["burst", BURST, null]);
  const { claim } = await openHolder(inbox);
  const { pages } = await pagesOf(inbox, writeOf(await claim(CLAIM), 1_000));
  expect(pages).toBeLessThan(claimed * MOST_PAGES_PER_ROW);
});

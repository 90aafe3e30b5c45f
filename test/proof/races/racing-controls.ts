/**
 * Racers as one finds them written, each of which goes wrong in some order of its statements and
 * its rival's. They are there to be caught: a harness that does not see them proves nothing.
 */
import { type SQL, sql } from "drizzle-orm";
import { INVOICE_STATUSES, isStatus, transition } from "../../../src/billing/lifecycle.ts";
import type { Connection, Row, Write } from "../../../src/db/connect.ts";
import { type Claim, mark, settle } from "../../../src/inbox/transitions.ts";
import type { StripeEvent } from "../../local/events.ts";
import type { FAULTS } from "./faults.ts";
import {
  CLAIM,
  CLAIMED_TWICE,
  FINALIZED,
  OLD,
  OVERDUE,
  PAID,
  settled,
  stored,
  VOIDED,
} from "./events.ts";
import type { Pair } from "./pairs.ts";
import { claimer, claimOf, deliveryOf, holder, type Racer } from "./racers.ts";

export interface Control extends Pair {
  /** What it must be found guilty of. */
  readonly guiltyOf: (typeof FAULTS)[number];
}

export const CONTROLS: readonly Control[] = [
  {
    name: "looks for the key, then works, then inserts it",
    racers: [looksFirst(PAID), looksFirst(PAID)],
    beginsAtOnce: true,
    guiltyOf: "doubled",
  },
  {
    name: 'says "duplicate" while somebody is at work',
    racers: [locksByItself(PAID), locksByItself(PAID)],
    beginsAtOnce: true,
    guiltyOf: "other",
  },
  {
    name: "marks without a fence",
    racers: [marksUnfenced(CLAIM), holder(claimOf(PAID, 2))],
    before: stored(PAID, CLAIMED_TWICE),
    beginsAtOnce: true,
    guiltyOf: "doubled",
  },
  {
    name: "records a failure without a fence",
    racers: [recordsUnfenced(CLAIM), claimer("suspects")],
    before: stored(PAID, OVERDUE),
    beginsAtOnce: true,
    guiltyOf: "doubled",
  },
  {
    name: "reads the invoice, then writes it",
    racers: [readsFirst(PAID), readsFirst(VOIDED)],
    before: settled(FINALIZED, OLD),
    beginsAtOnce: true,
    guiltyOf: "lost",
  },
];

function looksFirst(event: StripeEvent): Racer {
  return {
    delivers: event,
    run: async (db, tell) => {
      await begin(db);
      const found = await ask(db, sql`select from webhook_inbox where event_id = ${event.id}`);
      if (found.length === 0) {
        await ask(db, effectOf(event.id));
        await ask(db, sql`${insertMarked(event)} on conflict do nothing`);
      }
      await end(db, "commit");
      tell({ eventId: event.id, outcome: found.length === 0 ? "processed" : "duplicate" });
    },
  };
}

/** It never waits, and takes whoever holds its lock for one who will succeed. */
function locksByItself(event: StripeEvent): Racer {
  return {
    delivers: event,
    run: async (db, tell) => {
      await begin(db);
      const key = sql`hashtext(${event.id})`;
      const [lock] = await ask(db, sql`select pg_try_advisory_xact_lock(${key}) as taken`);
      const found = await ask(db, sql`select from webhook_inbox where event_id = ${event.id}`);
      const ours = lock?.["taken"] === true && found.length === 0;
      if (ours) {
        await ask(db, insertMarked(event));
        await ask(db, effectOf(event.id));
      }
      await end(db, "commit");
      tell({ eventId: event.id, outcome: ours ? "processed" : "duplicate" });
    },
  };
}

function marksUnfenced(claim: Claim): Racer {
  return {
    run: async (db, tell) => {
      await begin(db);
      await ask(
        db,
        sql`update webhook_inbox set processed_at = now(), outcome = 'processed'
          where event_id = ${claim.eventId}`,
      );
      await ask(db, effectOf(claim.eventId));
      await end(db, "commit");
      tell({ eventId: claim.eventId, outcome: "processed" });
    },
  };
}

/** Its work fails. */
function recordsUnfenced(claim: Claim): Racer {
  return {
    run: async (db, tell) => {
      await begin(db);
      const marked = await ask(db, mark(claim));
      await end(db, "rollback");
      if (marked.length === 0) return tell({ eventId: claim.eventId, outcome: "taken" });
      await begin(db);
      await ask(
        db,
        sql`update webhook_inbox set last_error = 'TypeError', available_at = now(),
          processed_at = null, outcome = null where event_id = ${claim.eventId}`,
      );
      await end(db, "commit");
      tell({ eventId: claim.eventId, outcome: "failed" });
    },
  };
}

function readsFirst(event: StripeEvent): Racer {
  return {
    delivers: event,
    run: async (db, tell) => {
      const says = event.type === "invoice.paid" ? "paid" : "void";
      await begin(db);
      await ask(db, settle(deliveryOf(event), null));
      const [invoice] = await ask(db, sql`select status from invoices where id = 'in_race'`);
      const state = INVOICE_STATUSES.find((status) => status === invoice?.["status"]) ?? "draft";
      const next = transition(state, says);
      await ask(
        db,
        isStatus(next)
          ? sql`update invoices set status = ${next},
              paid_at = case when ${next} = 'paid' then now() end where id = 'in_race'`
          : sql`insert into discrepancies (kind, object_id, detail)
              values (${next}, 'in_race', '{}')`,
      );
      await ask(db, effectOf(event.id));
      await end(db, "commit");
      tell({ eventId: event.id, outcome: "processed" });
    },
  };
}

function insertMarked({ id, type }: StripeEvent): SQL {
  return sql`insert into webhook_inbox (endpoint, event_id, event_type, processed_at, outcome)
    values ('billing', ${id}, ${type}, now(), 'processed')`;
}

function effectOf(eventId: string): SQL {
  return sql`insert into effects (event_id) values (${eventId})`;
}

async function begin(db: Connection): Promise<void> {
  // The product's own statements do nothing outside a transaction of theirs.
  await Promise.all(db.send([{ text: "begin; set local stripe_inbox.transaction = 'open'" }]));
}

async function end(db: Connection, text: "commit" | "rollback"): Promise<void> {
  await Promise.all(db.send([{ text }]));
}

async function ask(db: Connection, write: Write): Promise<readonly Row[]> {
  const [result] = await Promise.all(db.send([db.compile(write)]));
  return result?.rows ?? [];
}

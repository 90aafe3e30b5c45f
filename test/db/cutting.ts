/**
 * A receiver whose conversation with Postgres is cut after one message, and what its books say.
 * Every event has an effect that no key of its own would keep from happening twice.
 */
import { sql } from "drizzle-orm";
import { Client } from "pg";
import { inject, onTestFinished } from "vitest";
import type { Write } from "../../src/db/connect.ts";
import type { Endpoints } from "../../src/endpoints.ts";
import { type Message, startProxy } from "../local/proxy.ts";
import { billing, book } from "../worker/disturbances.ts";
import { openTestbed, type Testbed } from "../worker/testbed.ts";
import { timePasses } from "./holders.ts";

export interface Cut {
  /** Counts from 1, within one conversation. */
  readonly connection: number;
  readonly from: Message["from"];
  readonly n: number;
}

export interface CuttableReceiver {
  readonly inbox: Testbed;
  /** Statements on a connection that is kept. */
  readonly rows: Testbed["rows"];
  /** Each of these events fails at its first attempt. */
  readonly failing: Set<string>;
  /** Has one conversation, cut there; says whether it came that far. */
  readonly cutAt: (cut: Cut, conversation: () => Promise<unknown>) => Promise<boolean>;
  /**
   * Every place where that conversation can be cut: it has one now, undisturbed. After each message
   * is enough: before one is after the one before it, whichever side that came from.
   */
  readonly placesToCut: (conversation: () => Promise<unknown>) => Promise<readonly Cut[]>;
  /** Keeps what waits out of the way of the next conversation, until `finish`. */
  readonly setAside: () => Promise<unknown>;
  /** Time passes, and undisturbed ticks come, until nothing waits any more. */
  readonly finish: () => Promise<void>;
  /** What came of every event, by its id. */
  readonly books: () => Promise<ReadonlyMap<string, { attempts: number; rest: unknown }>>;
}

export async function openCuttable(env: Record<string, string>): Promise<CuttableReceiver> {
  let passed: Message[] = [];
  let earlier = 0;
  let cut: Cut | null = null;
  const proxy = await startProxy(inject("postgresUrl"), {
    fate: (message) => {
      passed.push(message);
      const here = { ...message, connection: message.connection - earlier };
      if (cut?.connection !== here.connection || cut.from !== here.from || cut.n !== here.n) {
        return "pass";
      }
      cut = null;
      return "cut after";
    },
  });
  onTestFinished(proxy.close);
  const failing = new Set<string>();
  const inbox = await openTestbed({ endpoints: failingOnce(failing), env, route: proxy.route });

  const reader = new Client({ connectionString: inbox.databaseUrl, application_name: "test" });
  await reader.connect();
  onTestFinished(() => reader.end());
  const rows: Testbed["rows"] = async (statement, values = []) =>
    (await reader.query(statement, values)).rows;

  const converse = async (conversation: () => Promise<unknown>): Promise<readonly Message[]> => {
    earlier = Math.max(earlier, ...passed.map(({ connection }) => connection));
    passed = [];
    await conversation();
    return passed.map((message) => ({ ...message, connection: message.connection - earlier }));
  };
  const unsettled = "processed_at is null and parked_at is null";

  return {
    inbox,
    rows,
    failing,
    placesToCut: async (conversation) =>
      (await converse(conversation)).map(({ connection, from, n }) => ({ connection, from, n })),
    cutAt: async (planned, conversation) => {
      cut = planned;
      await converse(conversation);
      const reached = cut === null;
      cut = null;
      return reached;
    },
    setAside: () =>
      rows(`update webhook_inbox set available_at = now() + interval '1 day'
        where ${unsettled} and available_at < now() + interval '1 hour'`),
    finish: async () => {
      for (let ticks = 0; ticks < 5; ticks++) {
        if ((await rows(`select from webhook_inbox where ${unsettled} limit 1`)).length === 0) {
          return;
        }
        await timePasses({ rows });
        await inbox.tick({ HYPERDRIVE: { connectionString: inbox.databaseUrl } });
      }
      throw new Error("Five ticks did not settle everything.");
    },
    books: async () => {
      const events = await rows(`select event_id, attempts, outcome, last_error, parked_at,
        invoices.status, amount_paid, invoices.customer_id, invoices.currency,
        (select count(*)::int from ledger_entries where invoice_id = invoices.id) as entries,
        (select count(*)::int from outbox where aggregate_id = invoices.id) as messages
        from webhook_inbox left join invoices on invoices.id = payload #>> '{data,object,id}'`);
      return new Map(
        events.map(({ event_id, attempts, ...rest }) => [
          String(event_id),
          { attempts: Number(attempts), rest },
        ]),
      );
    },
  };
}

function failingOnce(failing: Set<string>): Endpoints {
  return billing({
    "invoice.paid": (event, tx) => {
      if (failing.delete(event.id)) throw new TypeError("It fails the first time.");
      return [...book(event, tx), effectOf(event)];
    },
  });
}

function effectOf({ data }: Parameters<typeof book>[0]): Write {
  return sql`insert into outbox (aggregate_type, aggregate_id, event_type, payload)
    values ('Invoice', ${data.object.id}, 'Effect', '{}')`;
}

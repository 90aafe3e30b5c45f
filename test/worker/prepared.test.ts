/** Deliveries have their statements prepared; where a pooler confuses the names, it costs no event. */
import { describe, expect, inject, test } from "vitest";
import { anInvoiceEvent, openTestbed, query, type Testbed } from "./testbed.ts";

const poolerPort = inject("poolerPort");

function throughPooler(databaseUrl: string): string {
  const url = new URL(databaseUrl);
  url.port = String(poolerPort);
  return url.href;
}

async function namesOf(inbox: Testbed): Promise<readonly unknown[]> {
  const rows = await query(
    throughPooler(inbox.databaseUrl),
    "select name from pg_prepared_statements where name like 'stripe_inbox_%' order by 1",
  );
  return rows.map(({ name }) => name);
}

describe.skipIf(poolerPort === null)("through PgBouncer in transaction mode", () => {
  test.each([
    { mode: "sync", outcome: "processed" },
    { mode: "async", outcome: "stored" },
  ])("deliveries one after the other share a server, $mode", async ({ mode, outcome }) => {
    const inbox = await openTestbed({ env: { RECEIVE_MODE: mode }, route: throughPooler });
    const first = anInvoiceEvent();
    expect(await inbox.deliver(first)).toMatchObject({ status: 200, outcome });
    const names = await namesOf(inbox);
    expect(names.length).toBeGreaterThan(0);

    // This PgBouncer keeps no account of names: the server knows them already.
    for (let more = 0; more < 3; more++) {
      expect(await inbox.deliver(anInvoiceEvent())).toMatchObject({ status: 200, outcome });
    }
    expect(await inbox.deliver(first)).toMatchObject({ status: 200, outcome: "duplicate" });
    expect(await namesOf(inbox)).toEqual(names);
    expect(await inbox.books()).toMatchObject({ inbox: 4, entries: 4, messages: 4 });
    expect(await inbox.rows("select distinct attempts, last_error from webhook_inbox")).toEqual([
      { attempts: 1, last_error: null },
    ]);
  });

  test.each(["sync", "async"])("with PREPARE=off, nothing is prepared, %s", async (mode) => {
    const env = { PREPARE: "off", RECEIVE_MODE: mode };
    const inbox = await openTestbed({ env, route: throughPooler });
    await inbox.deliver(anInvoiceEvent());
    expect(await namesOf(inbox)).toEqual([]);
  });
});

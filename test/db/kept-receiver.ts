/**
 * The shipped `billing` endpoint on one connection that it keeps, for tests of very many events.
 * Behind the doors everything is as usual: one transaction each, settled in the inbox.
 */
import { Client } from "pg";
import { onTestFinished } from "vitest";
import { invoiceHandlers } from "../../src/billing/handlers.ts";
import { connect } from "../../src/db/connect.ts";
import { type Received, receiveSync } from "../../src/inbox/receive.ts";
import type { EndpointRules } from "../../src/inbox/rules.ts";
import { eventFromInbox } from "../../src/stripe/verify.ts";
import type { StripeEvent } from "../local/events.ts";
import { openTestbed, type Testbed } from "../worker/testbed.ts";

export interface KeptReceiver extends Pick<Testbed, "rows"> {
  readonly receive: (event: StripeEvent) => Promise<Received["outcome"]>;
}

const endpoint: EndpointRules = {
  name: "billing",
  livemode: null,
  accounts: "own",
  handlers: invoiceHandlers,
};

const policy = {
  timeouts: { lockTimeoutMs: 3_000, statementTimeoutMs: 5_000 },
  maxAttempts: 10,
  backoffCapSeconds: 300,
  remainingMs: () => 9_000,
};

/** Opened within a test, and closed when that is over. One event at a time. */
export async function openKeptReceiver(): Promise<KeptReceiver> {
  const { databaseUrl } = await openTestbed();
  const receiver = await connect(
    { connectionString: databaseUrl, pipeline: true },
    new AbortController().signal,
  );
  const reader = new Client({ connectionString: databaseUrl, application_name: "test" });
  await reader.connect();
  onTestFinished(async () => {
    await receiver.close();
    await reader.end();
  });
  return {
    rows: async (statement, values = []) => (await reader.query(statement, values)).rows,
    receive: async (event) => {
      const verified = eventFromInbox(JSON.stringify(event), false);
      const { outcome } = await receiveSync(receiver, { endpoint, event: verified }, policy);
      return outcome;
    },
  };
}

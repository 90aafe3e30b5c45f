/**
 * A setting that is there and wrong is refused by name: 503 to everybody, one error line that does
 * not repeat its value, nothing written. It is never replaced by its default.
 */
import { beforeAll, describe, expect, test } from "vitest";
import worker from "../../src/index.ts";
import { anInvoiceEvent, logLines, openTestbed, query } from "./testbed.ts";
import type { Testbed } from "./testbed.ts";

/** Recognisable, in order not to be found in a log line. */
const ODD = "9137";
const NOT_A_NUMBER = ["", " ", "abc", "0", "-1", `-${ODD}`, `0.${ODD}`, `${ODD}e1`, `0x${ODD}`];
const HUGE = [ODD.repeat(3), ODD.repeat(30), "Infinity", "NaN", "1_0", "1,0", "٣"];
const WORDS = ["", " ", "yes", "TRUE", "on ", "1", `secret-${ODD}`, "null"];

/** What each setting takes, at its ends, and what it refuses besides. */
const SETTINGS = [
  {
    name: "STRIPE_WEBHOOK_TOLERANCE_SECONDS",
    good: ["1", "86400"],
    bad: [...NOT_A_NUMBER, ...HUGE, "86401", "5m", "300s", " 300"],
  },
  {
    name: "RECEIVE_LOCK_TIMEOUT_MS",
    good: ["1", "4999"],
    bad: [...NOT_A_NUMBER, ...HUGE, "8001", "5000", "3s"],
  },
  {
    name: "RECEIVE_STATEMENT_TIMEOUT_MS",
    good: ["3001", "8000"],
    bad: [...NOT_A_NUMBER, ...HUGE, "8001", "5s"],
  },
  { name: "MAX_ATTEMPTS", good: ["1", "1000"], bad: [...NOT_A_NUMBER, ...HUGE, "1001"] },
  {
    name: "BACKOFF_CAP_SECONDS",
    good: ["1", "86400"],
    bad: [...NOT_A_NUMBER, ...HUGE, "86401", "5m"],
  },
  { name: "STRIPE_LIVEMODE", good: ["true", "false"], bad: [...WORDS, "True", "live", "on"] },
  { name: "RECEIVE_MODE", good: ["sync", "async"], bad: [...WORDS, "Sync", "both", "sync,async"] },
  { name: "PROCESSING", good: ["on", "paused"], bad: [...WORDS, "off", "Paused"] },
  {
    name: "LEASE_SECONDS",
    good: ["31", "3600"],
    bad: [...NOT_A_NUMBER, ...HUGE, "2", "3601", "2m"],
  },
  { name: "STATEMENT_TIMEOUT_MS", good: ["10001"], bad: [...NOT_A_NUMBER, ...HUGE, "120000"] },
  { name: "LOCK_TIMEOUT_MS", good: ["1", "29999"], bad: [...NOT_A_NUMBER, ...HUGE, "30000"] },
  { name: "CLAIM_BATCH", good: ["1", "1000"], bad: [...NOT_A_NUMBER, ...HUGE, "1001"] },
  { name: "CONCURRENCY", good: ["1", "6"], bad: [...NOT_A_NUMBER, ...HUGE, "7"] },
  { name: "TICK_BUDGET_SECONDS", good: ["1", "600"], bad: [...NOT_A_NUMBER, ...HUGE, "601"] },
  { name: "RETENTION_DAYS", good: ["1", "90"], bad: [...NOT_A_NUMBER, ...HUGE, "36501"] },
  { name: "TOMBSTONE_DAYS", good: ["30", "36500"], bad: [...NOT_A_NUMBER, ...HUGE, "29"] },
  {
    name: "SWEEP_INTERVAL_MINUTES",
    good: ["0", "1", "10080"],
    bad: [...NOT_A_NUMBER.filter((text) => text !== "0"), ...HUGE, "10081", "1h"],
  },
  {
    name: "STRIPE_CONNECTED_ACCOUNTS",
    good: ["", "acct_1", "acct_1,acct_2", " acct_1\nacct_2 "],
    bad: [ODD, "acct_", "cus_1", "acct_1;acct_2", `acct_${"1".repeat(65)}`],
  },
  {
    name: "SWEEP_SINCE",
    good: ["2026-11-29", "2020-01-01"],
    bad: ["", ODD, "yesterday", "2026-13-01", "2026-11-29T00:00:00", "29.11.2026"],
  },
  { name: "PIPELINE", good: ["on", "off"], bad: [...WORDS, "ON", "true"] },
];

describe.each([
  { door: "an app made from the shipped table", options: {} },
  { door: "the Worker as it is deployed", options: { app: worker } },
])("$door", ({ options }) => {
  test("books an event with no settings but the database and a secret", async () => {
    const inbox = await openTestbed(options);
    expect(await inbox.deliver(anInvoiceEvent())).toMatchObject({ outcome: "processed" });
  });

  describe.each(SETTINGS)("$name", ({ name, good, bad }) => {
    let databaseUrl: string;
    beforeAll(async () => void ({ databaseUrl } = await openTestbed()));

    const receiver = (value: unknown): Promise<Testbed> =>
      openTestbed({ ...options, databaseUrl, env: { [name]: value } });

    test.each(bad)("as `%s` is refused", async (value) => {
      const inbox = await receiver(value);
      const lines = await logLines(async () => {
        const answer = await inbox.deliver(anInvoiceEvent());
        expect(answer).toMatchObject({ status: 503, text: '{"outcome":"unavailable"}' });
      });
      expect(lines).toEqual([
        expect.objectContaining({ level: "error", status: 503, setting: name }),
      ]);
      expect(JSON.stringify(lines)).not.toContain(ODD);
      expect(await query(databaseUrl, "select from webhook_inbox")).toEqual([]);
    });

    test.each(good)("as `%s` is taken", async (value) => {
      const inbox = await receiver(value);
      expect(await inbox.post("/webhooks/stripe")).toMatchObject({ status: 400 });
    });
  });
});

test("a wait for a lock that would end as a slow statement is refused as a setting", async () => {
  const env = { RECEIVE_STATEMENT_TIMEOUT_MS: "3000" };
  const inbox = await openTestbed({ env });
  const lines = await logLines(async () => {
    expect(await inbox.deliver(anInvoiceEvent())).toMatchObject({ status: 503 });
  });
  expect(lines).toEqual([expect.objectContaining({ setting: "RECEIVE_LOCK_TIMEOUT_MS" })]);
});

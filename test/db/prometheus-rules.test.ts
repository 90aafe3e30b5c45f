/** The rules for Prometheus speak of figures that there are. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { ROOT } from "../local/run-file.ts";
import { anOperator } from "../worker/operator.ts";

test("every figure that a rule reads is one of /metrics, and each alert of ticks has its rule", async () => {
  const rules = readFileSync(join(ROOT, "src", "http", "prometheus-rules.yml"), "utf8");
  const { text } = await (await anOperator()).get("/metrics");
  const known = new Set(text.match(/(?<=# TYPE )\w+/g));
  const spelledOut = rules.replace(
    /stripe_inbox_needs_review_\(events\|messages\|calls\)/,
    "stripe_inbox_needs_review_events stripe_inbox_needs_review_messages stripe_inbox_needs_review_calls",
  );
  const read = new Set(spelledOut.match(/stripe_inbox_\w+/g));
  expect(read.size).toBeGreaterThan(8);
  expect([...read].filter((name) => !known.has(name))).toEqual([]);
  for (const alert of [
    "TicksFailing",
    "BacklogTooOld",
    "NeedsReview",
    "Discrepancies",
    "OutboxStuck",
    "SweepOverdue",
  ]) {
    expect(rules).toContain(`alert: StripeInbox${alert}\n`);
  }
});

/** The Worker of a clone where the guide was followed, bundled as for a deploy, in the real workerd. */
import { relative } from "node:path";
import { expect, test } from "vitest";
import { signedRequest } from "../local/index.ts";
import { ROOT } from "../local/run-file.ts";
import { bundle, startWorkerd } from "../proof/stage/workerd.ts";
import { query, SECRET } from "../worker/testbed.ts";
import { makeClone } from "./clone.ts";
import { withRefunds } from "./database.ts";
import { aCreditNote, aRefund } from "./refund-events.ts";

test("books a refund and a credit note once", async () => {
  const { databaseUrl } = await withRefunds();
  const script = await bundleClone();
  const vars = { STRIPE_WEBHOOK_SECRET: SECRET };
  const workerd = await startWorkerd([{ name: "clone", script, databaseUrl, vars }]);
  try {
    const url = new URL("/webhooks/stripe/billing", await workerd.url("clone"));
    for (const event of [aRefund({ id: "ch_1" }), aCreditNote({ id: "cn_1" })]) {
      for (const outcome of ["processed", "duplicate"]) {
        const response = await fetch(url, await signedRequest(event, SECRET));
        expect(await response.json()).toEqual({ outcome, event: event.id });
      }
    }
  } finally {
    await workerd.stop();
  }
  const rows = await query(
    databaseUrl,
    "select charge_id, id from charge_refunds full join credit_notes on false order by 1",
  );
  expect(rows).toEqual([
    { charge_id: "ch_1", id: null },
    { charge_id: null, id: "cn_1" },
  ]);
});

async function bundleClone(): Promise<string> {
  const clone = await makeClone();
  try {
    return await bundle(`${relative(ROOT, clone.root)}/src/index.ts`);
  } finally {
    await clone.remove();
  }
}

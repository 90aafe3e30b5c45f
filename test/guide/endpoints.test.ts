/** What the guide says of several endpoints, through the doors. */
import { beforeEach, describe, expect, test } from "vitest";
import { openOutbound } from "../db/outbox.ts";
import { anInvoiceEvent, signedRequest } from "../local/index.ts";
import { openTestbed, type Testbed } from "../worker/testbed.ts";
import { withRefunds } from "./database.ts";
import { endpoints } from "./endpoints.ts";
import { aRefund } from "./refund-events.ts";
import { consequences } from "./with-refunds.ts";

const SECRETS = {
  billing: "whsec_billing",
  connect: "whsec_connect",
  sandbox: "whsec_sandbox",
  upgrade: "whsec_upgrade",
};
type Name = keyof typeof SECRETS;

const env = {
  STRIPE_WEBHOOK_SECRET: SECRETS.billing,
  STRIPE_CONNECT_WEBHOOK_SECRET: SECRETS.connect,
  STRIPE_SANDBOX_WEBHOOK_SECRET: SECRETS.sandbox,
  STRIPE_UPGRADE_WEBHOOK_SECRET: SECRETS.upgrade,
};

const live = { livemode: true } as const;
const NEW = "2026-10-28.endive";
const OLD = "2022-11-15";

let databaseUrl: string;
let inbox: Testbed;

beforeEach(async () => {
  ({ databaseUrl } = await withRefunds());
  inbox = await openTestbed({ databaseUrl, endpoints, env });
});

const statusOf = async (receiver: Testbed, secret: string) => {
  const event = anInvoiceEvent("invoice.paid", {}, live);
  return (await receiver.deliver(event, at("billing", secret))).status;
};
const at = (endpoint: Name, secret: string = SECRETS[endpoint]) => ({ endpoint, secret });
const reasons = () =>
  inbox.rows("select endpoint, ignored_reason from webhook_inbox order by endpoint, 2");

test("each endpoint takes what its own secret signed, and nothing else", async () => {
  const names: readonly Name[] = ["billing", "connect", "sandbox", "upgrade"];
  for (const name of names) {
    for (const other of names) {
      const status = other === name ? 200 : 400;
      const answer = await inbox.deliver(anInvoiceEvent(), at(name, SECRETS[other]));
      expect(answer).toMatchObject({ status });
    }
  }
  expect(await reasons()).toHaveLength(names.length);
});

test("events of a connected account are ignored by our own endpoint, and ours by theirs", async () => {
  await inbox.deliver(aRefund({}, { ...live, account: "acct_1" }), at("billing"));
  await inbox.deliver(aRefund({}, live), at("connect"));
  expect(await reasons()).toEqual([
    { endpoint: "billing", ignored_reason: "account" },
    { endpoint: "connect", ignored_reason: "account" },
  ]);
  const theirs = aRefund({}, { ...live, account: "acct_1" });
  expect(await inbox.deliver(theirs, at("connect"))).toMatchObject({ outcome: "processed" });
});

test("what follows from a refund in a connected account is called for in its name", async () => {
  const outbound = await openOutbound({ databaseUrl, endpoints, consequences, env });
  const { inbox: receiver, queue, api, consume } = outbound;
  await receiver.deliver(aRefund({}, { ...live, account: "acct_1" }), at("connect"));
  await receiver.deliver(aRefund({}, live), at("billing"));
  expect(await consume(queue.messages)).toEqual(["ack", "ack"]);
  expect(api.calls.map(({ account }) => account)).toEqual(["acct_1", null]);
});

test("live events are ignored in the sandbox, its own are recorded, and neither is booked", async () => {
  await inbox.deliver(anInvoiceEvent("invoice.paid", {}, live), at("sandbox"));
  expect(await reasons()).toEqual([{ endpoint: "sandbox", ignored_reason: "livemode" }]);
  await inbox.deliver(anInvoiceEvent("invoice.paid", {}, { livemode: false }), at("sandbox"));
  expect(await reasons()).toEqual([
    { endpoint: "sandbox", ignored_reason: "livemode" },
    { endpoint: "sandbox", ignored_reason: "no_handler" },
  ]);
  await inbox.deliver(anInvoiceEvent("invoice.paid", {}, { livemode: false }), at("billing"));
  expect(await inbox.books()).toMatchObject({ inbox: 3, entries: 0 });
});

test("while a secret is rolled, both are good; afterwards the old one is refused", async () => {
  const rolling = { ...env, STRIPE_WEBHOOK_SECRET: `whsec_rolled,${SECRETS.billing}` };
  const during = await openTestbed({ databaseUrl, endpoints, env: rolling });
  const rolled = { ...env, STRIPE_WEBHOOK_SECRET: "whsec_rolled" };
  const after = await openTestbed({ databaseUrl, endpoints, env: rolled });
  expect(await statusOf(during, "whsec_rolled")).toBe(200);
  expect(await statusOf(during, SECRETS.billing)).toBe(200);
  expect(await statusOf(after, "whsec_rolled")).toBe(200);
  expect(await statusOf(after, SECRETS.billing)).toBe(400);
});

describe("while the API version is upgraded", () => {
  const inVersion = (apiVersion: typeof OLD | typeof NEW, id = "evt_1") =>
    anInvoiceEvent("invoice.paid", { id: "in_1" }, { ...live, id, apiVersion });

  test("the new one is first only recorded, at a route of its own", async () => {
    await inbox.deliver(inVersion(OLD), at("billing"));
    expect(await inbox.deliver(inVersion(NEW), at("upgrade"))).toMatchObject({
      outcome: "ignored",
    });
    expect(await inbox.books()).toMatchObject({ inbox: 2, invoices: 1, entries: 1, messages: 1 });
    const stored = await inbox.rows(`select endpoint, payload ->> 'api_version' as version
      from webhook_inbox order by endpoint`);
    expect(stored).toEqual([
      { endpoint: "billing", version: OLD },
      { endpoint: "upgrade", version: NEW },
    ]);
  });

  const openToBoth = async () =>
    openTestbed({
      databaseUrl,
      endpoints,
      env: { ...env, STRIPE_WEBHOOK_SECRET: `${SECRETS.billing},${SECRETS.upgrade}` },
    });
  const secretOf = { [OLD]: SECRETS.billing, [NEW]: SECRETS.upgrade };

  test.each([
    { first: OLD, second: NEW },
    { first: NEW, second: OLD },
  ] as const)(
    "then both come to one route, and each event is booked once, $first first",
    async ({ first, second }) => {
      const receiver = await openToBoth();
      const outcomes: unknown[] = [];
      for (const version of [first, second]) {
        const request = await signedRequest(inVersion(version), secretOf[version]);
        const path = `/webhooks/stripe/billing?version=${version}`;
        outcomes.push((await receiver.post(path, request)).outcome);
      }
      expect(outcomes).toEqual(["processed", "duplicate"]);
      expect(await receiver.books()).toMatchObject({ inbox: 1, entries: 1, messages: 1 });
    },
  );

  test("so it is where both come at once, ten times", async () => {
    const receiver = await openToBoth();
    for (let n = 0; n < 10; n++) {
      const answers = await Promise.all(
        ([OLD, NEW] as const).map((version) =>
          receiver.deliver(inVersion(version, `evt_${n}`), at("billing", secretOf[version])),
        ),
      );
      const outcomes = new Set(answers.map(({ outcome }) => outcome));
      expect(outcomes).toEqual(new Set(["duplicate", "processed"]));
    }
    expect(await receiver.books()).toMatchObject({ inbox: 10, entries: 1, messages: 1 });
  });
});

/**
 * Whose event is it? What an endpoint does not want is recorded as ignored, with its reason, books
 * nothing, and is settled at once.
 */
import { beforeAll, describe, expect, test } from "vitest";
import { invoiceHandlers } from "../../src/billing/handlers.ts";
import type { Endpoint } from "../../src/endpoints.ts";
import { type EventOptions, stripeEvent, thinNotification, UNRELATED } from "../local/events.ts";
import { anInvoiceEvent, freshId, logLines, openTestbed, SECRET } from "./testbed.ts";
import type { Testbed } from "./testbed.ts";

/** An endpoint that wants every invoice event of our own account, but for `rules`. */
function endpoint(rules: Partial<Endpoint> = {}): Endpoint {
  return {
    secrets: "STRIPE_WEBHOOK_SECRET",
    accounts: "own",
    handlers: invoiceHandlers,
    ...rules,
  };
}

const options = (): EventOptions => ({
  id: freshId("evt"),
  apiVersion: "2026-10-28.endive",
  livemode: false,
  created: 1_790_000_000,
});

const thin = (): ReturnType<typeof thinNotification> =>
  thinNotification(freshId("evt"), { created: 1_790_000_000, livemode: false });

async function expectIgnored(
  inbox: Testbed,
  event: { readonly id: string; readonly [field: string]: unknown },
  reason: string,
  at = "billing",
): Promise<void> {
  const { inbox: recorded, ...booked } = await inbox.books();
  const delivery = { endpoint: at, secret: SECRET };
  const lines = await logLines(async () => {
    expect(await inbox.deliver(event, delivery)).toMatchObject({
      status: 200,
      outcome: "ignored",
      event: event.id,
    });
  });
  expect(lines).toEqual([
    expect.objectContaining({ level: "info", outcome: "ignored", ignored: reason }),
  ]);
  const row = `select outcome, ignored_reason, attempts, processed_at is not null as settled,
    parked_at from webhook_inbox where event_id = $1 and endpoint = $2`;
  expect(await inbox.rows(row, [event.id, at])).toEqual([
    { outcome: "ignored", ignored_reason: reason, attempts: 1, settled: true, parked_at: null },
  ]);
  expect(await inbox.books()).toEqual({ ...booked, inbox: recorded + 1 });
  expect(await inbox.deliver(event, delivery)).toMatchObject({ status: 200, outcome: "duplicate" });
}

async function expectBooked(inbox: Testbed, event: object, at: string): Promise<void> {
  const { entries } = await inbox.books();
  const answer = await inbox.deliver(event, { endpoint: at, secret: SECRET });
  expect(answer).toMatchObject({ status: 200, outcome: "processed" });
  expect(await inbox.books()).toMatchObject({ entries: entries + 1 });
}

describe.each([
  { all: undefined, silent: "any" },
  { all: "true", silent: "live" },
  { all: "false", silent: "test" },
] as const)("where STRIPE_LIVEMODE is $all", ({ all, silent }) => {
  let inbox: Testbed;
  beforeAll(async () => {
    inbox = await openTestbed({
      endpoints: {
        live: endpoint({ livemode: true }),
        test: endpoint({ livemode: false }),
        silent: endpoint(),
      },
      env: { STRIPE_LIVEMODE: all },
    });
  });

  test.each([
    { livemode: true, takenBy: ["live", "any"] },
    { livemode: false, takenBy: ["test", "any"] },
    { livemode: undefined, takenBy: ["any"] },
    { livemode: null, takenBy: ["any"] },
    { livemode: "true", takenBy: ["any"] },
    { livemode: "false", takenBy: ["any"] },
    { livemode: 1, takenBy: ["any"] },
    { livemode: 0, takenBy: ["any"] },
  ])(
    "livemode $livemode is taken by $takenBy; what the endpoint says goes first",
    async ({ livemode, takenBy }) => {
      for (const [at, accepts] of Object.entries({ live: "live", test: "test", silent })) {
        const event = { ...anInvoiceEvent(), livemode };
        if (takenBy.includes(accepts)) await expectBooked(inbox, event, at);
        else await expectIgnored(inbox, event, "livemode", at);
      }
    },
  );
});

describe("account", () => {
  let inbox: Testbed;
  beforeAll(async () => {
    const connected = endpoint({ accounts: "connected" });
    inbox = await openTestbed({ endpoints: { own: endpoint(), connected } });
  });

  test.each([
    { account: undefined, wantedBy: "own", ignoredBy: "connected" },
    { account: null, wantedBy: "own", ignoredBy: "connected" },
    { account: "", wantedBy: "own", ignoredBy: "connected" },
    { account: "acct_invented", wantedBy: "connected", ignoredBy: "own" },
  ])(
    "an event of the account `$account` is wanted by the endpoint for $wantedBy accounts alone",
    async ({ account, wantedBy, ignoredBy }) => {
      await expectIgnored(inbox, { ...anInvoiceEvent(), account }, "account", ignoredBy);
      await expectBooked(inbox, { ...anInvoiceEvent(), account }, wantedBy);
    },
  );
});

test("as shipped, `billing` is for our own account, and `connect` for the others", async () => {
  const inbox = await openTestbed();
  const ours = anInvoiceEvent();
  const theirs = anInvoiceEvent("invoice.paid", {}, { account: "acct_invented" });
  await inbox.deliver(ours, { endpoint: "connect" });
  await inbox.deliver(theirs, { endpoint: "connect" });
  await inbox.deliver(theirs);
  expect(await inbox.books()).toMatchObject({ inbox: 3, entries: 0 });
  await inbox.deliver(ours);
  const rows = `select endpoint, event_id, ignored_reason from webhook_inbox
    order by endpoint, event_id = $1`;
  expect(await inbox.rows(rows, [ours.id])).toEqual([
    { endpoint: "billing", event_id: theirs.id, ignored_reason: "account" },
    { endpoint: "billing", event_id: ours.id, ignored_reason: null },
    { endpoint: "connect", event_id: theirs.id, ignored_reason: "no_handler" },
    { endpoint: "connect", event_id: ours.id, ignored_reason: "account" },
  ]);
  expect(await inbox.books()).toMatchObject({ inbox: 4, entries: 1, messages: 1 });
});

describe("a type without handler is ignored", () => {
  let inbox: Testbed;
  beforeAll(async () => void (inbox = await openTestbed()));
  test.each<{ type: string; object: Readonly<Record<string, unknown>> }>([
    ...Object.entries(UNRELATED).map(([type, make]) => ({ type, object: make("invented") })),
    { type: "totally.new_event", object: {} },
    { type: "constructor", object: { id: "in_1" } },
    { type: "__proto__", object: { id: "in_1" } },
    { type: "toString", object: { id: null } },
    { type: "invoice.paid ", object: { id: 7 } },
    { type: "INVOICE.PAID", object: { id: "" } },
  ])("$type", async ({ type, object }) => {
    const event = stripeEvent(type, object, options());
    await expectIgnored(inbox, event, "no_handler");
    const { id } = object;
    const objectId = typeof id === "string" && id !== "" ? id : null;
    const row = "select object_id from webhook_inbox where event_id = $1";
    expect(await inbox.rows(row, [event.id])).toEqual([{ object_id: objectId }]);
  });
});

describe("a thin notification is ignored, whatever else it holds", () => {
  let inbox: Testbed;
  beforeAll(async () => void (inbox = await openTestbed()));
  test.each<{ with: string; fields: object }>([
    { with: "the fields of Stripe's documentation", fields: {} },
    { with: "no livemode", fields: { livemode: undefined } },
    { with: "a number as its time", fields: { created: 1_790_000_000 } },
    { with: "no time, context or related object", fields: { created: null, related_object: null } },
    { with: "data that is a list", fields: { data: [] } },
    { with: "data that is null", fields: { data: null } },
    { with: "data that holds an invoice", fields: { data: { object: { id: "in_1" } } } },
    { with: "the type of an invoice event", fields: { type: "invoice.paid" } },
    { with: "a context and changes", fields: { context: "acct_1", changes: { after: {} } } },
  ])("with $with", async ({ fields }) => {
    await expectIgnored(inbox, { ...thin(), ...fields }, "thin");
  });
});

test("one event at two endpoints is two rows, one entry and one message", async () => {
  const inbox = await openTestbed({ endpoints: { left: endpoint(), right: endpoint() } });
  const event = anInvoiceEvent();
  for (const name of ["left", "right"]) {
    const delivery = { endpoint: name, secret: SECRET };
    expect(await inbox.deliver(event, delivery)).toMatchObject({ outcome: "processed" });
    expect(await inbox.deliver(event, delivery)).toMatchObject({ outcome: "duplicate" });
  }
  expect(await inbox.books()).toEqual({
    inbox: 2,
    invoices: 1,
    entries: 1,
    messages: 1,
    discrepancies: 0,
  });
});

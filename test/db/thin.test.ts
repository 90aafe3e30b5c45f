/** Thin (v2) notifications: what they name is fetched first, and booked once whatever goes wrong. */
import { sql } from "drizzle-orm";
import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import type { Endpoints } from "../../src/endpoints.ts";
import type { ThinHandlerTable } from "../../src/inbox/handler.ts";
import { PermanentError } from "../../src/inbox/retry.ts";
import { thinNotification } from "../local/events.ts";
import { type ApiOptions, type FakeStripeApi, startStripeApi } from "../local/stripe-api.ts";
import { anInvoiceEvent, freshId, logLines, openTestbed, type Testbed } from "../worker/testbed.ts";

const TYPE = "v1.billing.meter.error_report_triggered";
const METER = { id: "mtr_1", object: "billing.meter", event_name: "calls" };
const PATH = `/v1/billing/meters/${METER.id}`;

let atWork: () => Promise<readonly unknown[]>;
/** What a connection of ours was at while Stripe was asked. */
let whileAsked: unknown[];

const writesMeter: ThinHandlerTable = {
  [TYPE]: {
    fetch: "related_object",
    handle: (event, meter, tx) => [
      tx.execute(sql`insert into meters values (${event.id}, ${meter?.event_name ?? null})`),
    ],
  },
};

interface Open {
  readonly thinHandlers?: ThinHandlerTable;
  readonly endpoint?: Partial<Endpoints[string]>;
  readonly env?: Readonly<Record<string, unknown>>;
  readonly listFault?: NonNullable<ApiOptions["listFault"]>;
}

async function open({ thinHandlers = writesMeter, endpoint, env, listFault }: Open = {}) {
  const api = await startStripeApi({
    listFault: async (request) => {
      whileAsked.push(...(await atWork()));
      return listFault?.(request) ?? null;
    },
  });
  onTestFinished(api.close);
  const inbox = await openTestbed({
    endpoints: {
      billing: {
        secrets: "STRIPE_WEBHOOK_SECRET",
        accounts: "own",
        handlers: {},
        thinHandlers,
        ...endpoint,
      },
    },
    env: {
      STRIPE_API_KEY: "sk_test_made_up",
      STRIPE_API_URL: api.url,
      // What a sweep asks for is another matter.
      SWEEP_INTERVAL_MINUTES: "0",
      ...env,
    },
  });
  await inbox.rows("create table meters (event_id text not null, name text)");
  atWork = () =>
    inbox.rows(`select state, query from pg_stat_activity
      where datname = current_database() and application_name = 'stripe-inbox'
        and (state = 'active' or state like 'idle in transaction%')`);
  return { inbox, api };
}

const aNotification = (fields: object = {}) => ({
  ...thinNotification(freshId("evt"), { created: 1_790_000_000, livemode: false }),
  type: TYPE,
  related_object: { id: METER.id, type: METER.object, url: PATH },
  ...fields,
});

const meters = (inbox: Testbed) => inbox.rows("select name from meters");

/** What the row says of the event. */
async function progress(inbox: Testbed) {
  const [row] = await inbox.rows(`select outcome, ignored_reason, attempts, last_error,
    parked_at is not null as parked, object_id from webhook_inbox`);
  return row;
}

/** No other connection is at work beside the one that is looked at. */
const oneLane = (inbox: Testbed) => inbox.tick({ CONCURRENCY: "1" });

/** Due now, whatever was waited for. */
const due = (inbox: Testbed) =>
  inbox.rows("update webhook_inbox set available_at = now() - interval '1 second'");

beforeEach(() => {
  whileAsked = [];
  atWork = () => Promise.resolve([]);
});

const asked = (api: FakeStripeApi) =>
  api.lists.requests.map(({ path, account }) => ({ path, account }));

describe.each(["sync", "async"] as const)("at an endpoint in %s mode", (mode) => {
  test("is stored, and its handler has the object, fetched with no transaction open", async () => {
    const { inbox, api } = await open({ endpoint: { mode } });
    api.lists.objects.set(PATH, METER);
    const answer = await inbox.deliver(aNotification());
    expect(answer).toMatchObject({ status: 200, outcome: "stored" });
    expect(await meters(inbox)).toEqual([{ name: "calls" }]);
    expect(await progress(inbox)).toMatchObject({ outcome: "processed", object_id: METER.id });
    expect(asked(api)).toEqual([{ path: PATH, account: null }]);
    expect(whileAsked).toEqual([]);
  });

  test("ten deliveries at once are booked once", async () => {
    const { inbox, api } = await open({ endpoint: { mode } });
    api.lists.objects.set(PATH, METER);
    const event = aNotification();
    const answers = await Promise.all(Array.from({ length: 10 }, () => inbox.deliver(event)));
    expect(answers.filter(({ status }) => status !== 200)).toEqual([]);
    expect(await meters(inbox)).toHaveLength(1);
  });
});

test("of a connected account, the object is asked for in its name", async () => {
  const { inbox, api } = await open({ endpoint: { accounts: "connected" } });
  api.lists.objects.set(PATH, METER);
  await inbox.deliver(aNotification({ context: "acct_1" }));
  expect(asked(api)).toEqual([{ path: PATH, account: "acct_1" }]);
  expect(await meters(inbox)).toEqual([{ name: "calls" }]);
});

test.each([
  ["of a connected account at an endpoint for our own", { context: "acct_1" }, "account"],
  ["of Stripe's other mode", { livemode: true }, "livemode"],
  ["whose type has no handler", { type: "v1.billing.meter.no_meter_found" }, "thin"],
])("one %s is ignored, and nothing is asked for", async (_, fields, reason) => {
  const { inbox, api } = await open({ endpoint: { livemode: false } });
  expect(await inbox.deliver(aNotification(fields))).toMatchObject({ outcome: "ignored" });
  expect(await progress(inbox)).toMatchObject({ outcome: "ignored", ignored_reason: reason });
  expect(asked(api)).toEqual([]);
});

/** The event behind a notification, where Stripe has it. */
const eventPath = ({ id }: { readonly id: string }) => `/v2/core/events/${id}`;

test("an object that Stripe knows no more is null", async () => {
  const { inbox, api } = await open();
  const notification = aNotification();
  api.lists.objects.set(eventPath(notification), notification);
  await inbox.deliver(notification);
  expect(await meters(inbox)).toEqual([{ name: null }]);
});

test("one that was deleted is null, too", async () => {
  const { inbox, api } = await open();
  api.lists.objects.set(PATH, { id: METER.id, object: METER.object, deleted: true });
  await inbox.deliver(aNotification());
  expect(await meters(inbox)).toEqual([{ name: null }]);
});

test("where Stripe does not know the event either, the key is another account's: it is not taken for gone", async () => {
  const { inbox } = await open({ env: { MAX_ATTEMPTS: "2" } });
  await inbox.deliver(aNotification());
  expect(await progress(inbox)).toMatchObject({ outcome: null, last_error: "UnknownEvent" });
  await due(inbox);
  await oneLane(inbox);
  expect(await progress(inbox)).toMatchObject({ last_error: "UnknownEvent", parked: true });
  expect(await meters(inbox)).toEqual([]);
});

test("a singleton has no id, and is known by what it is", async () => {
  const path = "/v1/balance";
  const { inbox, api } = await open({
    thinHandlers: {
      "v1.balance.available": {
        fetch: "related_object",
        handle: ({ id }, balance, tx) => [
          tx.execute(sql`insert into meters values (${id}, ${balance?.object})`),
        ],
      },
    },
  });
  api.lists.objects.set(path, { object: "balance", available: [] });
  const related_object = { type: "balance", url: path };
  await inbox.deliver(aNotification({ type: "v1.balance.available", related_object }));
  expect(await meters(inbox)).toEqual([{ name: "balance" }]);
});

test.each(["gold.v2", "Basic%20plan", "25%25OFF"])(
  "an id of the user's own, such as %s, is asked for as it stands",
  async (id) => {
    const { inbox, api } = await open();
    const url = `/v1/billing/meters/${id}`;
    api.lists.objects.set(url, { ...METER, id });
    await inbox.deliver(aNotification({ related_object: { id, type: METER.object, url } }));
    expect(asked(api)).toEqual([{ path: url, account: null }]);
    expect(await meters(inbox)).toEqual([{ name: "calls" }]);
  },
);

test("so is one that the notification does not name, and nothing is asked for", async () => {
  const { inbox, api } = await open();
  await inbox.deliver(aNotification({ related_object: null }));
  expect(await meters(inbox)).toEqual([{ name: null }]);
  expect(asked(api)).toEqual([]);
});

test("a handler may ask for the event behind the notification instead", async () => {
  const { inbox, api } = await open({
    thinHandlers: {
      [TYPE]: {
        fetch: "event",
        handle: ({ id }, event, tx) => [
          tx.execute(
            sql`insert into meters values (${id}, ${event?.data.developer_message_summary})`,
          ),
        ],
      },
    },
  });
  const notification = aNotification();
  const path = eventPath(notification);
  const data = { developer_message_summary: "two errors" };
  api.lists.objects.set(path, { ...notification, data });
  await inbox.deliver(notification);
  expect(asked(api)).toEqual([{ path, account: null }]);
  expect(await meters(inbox)).toEqual([{ name: "two errors" }]);
});

describe.each([
  ["says 503", { status: 503 }, "Stripe:503"],
  ["says 429", { status: 429 }, "Stripe:429"],
  ["does not know the key", { status: 401 }, "Stripe:401"],
  ["says nothing", "lose the request", "StripeConnectionError"],
  ["says 502", { status: 502 }, "Stripe:502"],
] as const)("while Stripe %s", (_, fault, code) => {
  test("it waits, no attempt counts, and it is booked afterwards", async () => {
    let well = false;
    const { inbox, api } = await open({ listFault: () => (well ? null : fault) });
    api.lists.objects.set(PATH, METER);
    expect(await inbox.deliver(aNotification())).toMatchObject({ outcome: "stored" });
    for (let n = 0; n < 12; n++) {
      await due(inbox);
      await oneLane(inbox);
    }
    const waiting = { outcome: null, attempts: 0, last_error: code, parked: false };
    expect(await progress(inbox)).toMatchObject(waiting);
    well = true;
    await due(inbox);
    await oneLane(inbox);
    expect(await progress(inbox)).toMatchObject({ outcome: "processed" });
    expect(await meters(inbox)).toEqual([{ name: "calls" }]);
    expect(whileAsked).toEqual([]);
  });
});

test.each([
  ["there is no key", { STRIPE_API_KEY: undefined }, "NoApiKey"],
  ["the key is of Stripe's other mode", { STRIPE_API_KEY: "sk_live_made_up" }, "WrongMode"],
])("where %s, it waits, visibly", async (_, env, code) => {
  const { inbox, api } = await open({ env });
  await inbox.deliver(aNotification());
  expect(await progress(inbox)).toMatchObject({ outcome: null, attempts: 0, last_error: code });
  expect(asked(api)).toEqual([]);
});

test.each(["//evil.test/", "https://evil.test/", "/v1/../../x", "@evil.test/v1/", "/v3/x", 7])(
  "a place such as %s is not gone to",
  async (url) => {
    const { inbox, api } = await open();
    const related = { id: METER.id, type: METER.object, url };
    await inbox.deliver(aNotification({ related_object: related }));
    expect(asked(api)).toEqual([]);
    expect(await progress(inbox)).toMatchObject({
      attempts: 1,
      last_error: "UnusableNotification",
    });
  },
);

test.each([
  [{ status: 400 }, "Stripe:400"],
  [{ status: 403 }, "Stripe:403"],
  [{ status: 200, body: { id: "mtr_2" } }, "UnexpectedAnswer"],
])(
  "what Stripe answers with %j counts as an attempt, and is parked in the end",
  async (fault, last_error) => {
    const { inbox } = await open({ listFault: () => fault, env: { MAX_ATTEMPTS: "2" } });
    await inbox.deliver(aNotification());
    await due(inbox);
    await oneLane(inbox);
    expect(await progress(inbox)).toMatchObject({ last_error, parked: true });
  },
);

test("a context that is none parks it, and keeps no other", async () => {
  const { inbox } = await open({ endpoint: { accounts: "connected" }, env: { MAX_ATTEMPTS: "1" } });
  await inbox.deliver(aNotification({ context: "acct_1\nX-Other: 1" }));
  const parked = { last_error: "UnusableNotification", parked: true };
  expect(await progress(inbox)).toMatchObject(parked);
});

test("a handler that refuses it parks it; requeued, it is fetched anew", async () => {
  let refuses = true;
  const { inbox, api } = await open({
    thinHandlers: {
      [TYPE]: {
        fetch: "related_object",
        handle: (event, meter, tx) => {
          if (refuses) throw new PermanentError("not_yet");
          return writesMeter[TYPE]?.fetch === "related_object"
            ? writesMeter[TYPE].handle(event, meter, tx)
            : [];
        },
      },
    },
  });
  api.lists.objects.set(PATH, METER);
  await inbox.deliver(aNotification());
  expect(await progress(inbox)).toMatchObject({ last_error: "PermanentError:not_yet" });
  refuses = false;
  await inbox.rows("update webhook_inbox set parked_at = null, attempts = 0, last_error = null");
  await due(inbox);
  await oneLane(inbox);
  expect(await meters(inbox)).toEqual([{ name: "calls" }]);
  expect(asked(api)).toHaveLength(2);
});

test("in one tick, Stripe being out of reach is waited for twice, and keeps no other event", async () => {
  const { inbox, api } = await open({
    endpoint: {
      mode: "async",
      handlers: { "invoice.paid": (_, tx) => [tx.execute(sql`select 1`)] },
    },
    listFault: () => ({ status: 503 }),
  });
  const events = [...Array.from({ length: 5 }, () => aNotification()), anInvoiceEvent()];
  for (const event of events) await inbox.deliver(event);
  await inbox.rows(`update webhook_inbox set attempts = 0, last_error = null, processed_at = null,
    outcome = null, available_at = now() - interval '1 second'`);
  api.lists.requests.length = 0;
  await logLines(async () => {
    expect(await oneLane(inbox)).toMatchObject({ processed: 1, failed: 5 });
  });
  expect(asked(api)).toHaveLength(2);
});

/** What is refused at the door never reaches the database: no connection is opened for it. */
import { describe, expect, test, vi } from "vitest";
import worker from "../../src/index.ts";
import { anInvoiceEvent, logLines, openTestbed, query, roadTo, type Testbed } from "./testbed.ts";

/** Nobody listens on port 1: whoever tries to connect gets a refusal, and Stripe a 503. */
const NOWHERE = roadTo("postgres://inbox:unheard@127.0.0.1:1/inbox");
const TOO_LARGE = new Uint8Array(4 * 1024 * 1024 + 1);

type Deliver = (inbox: Testbed) => ReturnType<Testbed["deliver"]>;
const REFUSED: readonly { what: string; status: number; deliver: Deliver }[] = [
  {
    what: "signed with another secret",
    status: 400,
    deliver: (inbox) => inbox.deliver(anInvoiceEvent(), { secret: "whsec_other" }),
  },
  {
    what: "unsigned",
    status: 400,
    deliver: (inbox) => inbox.post("/webhooks/stripe", { body: JSON.stringify(anInvoiceEvent()) }),
  },
  {
    what: "signed long ago",
    status: 400,
    deliver: (inbox) => inbox.deliver(anInvoiceEvent(), { timestamp: 1_700_000_000 }),
  },
  { what: "signed, and no event", status: 400, deliver: (inbox) => inbox.deliver("{}") },
  {
    what: "one byte too large",
    status: 413,
    deliver: (inbox) => inbox.post("/webhooks/stripe", { body: TOO_LARGE }),
  },
];

describe.each([
  { door: "an app made from the shipped table", options: {} },
  { door: "the Worker as it is deployed", options: { app: worker } },
])("with no database at all, $door", ({ options }) => {
  test.each(REFUSED)("refuses as ever what is $what", async ({ status, deliver }) => {
    const inbox = await openTestbed({ ...options, env: NOWHERE });
    expect(await deliver(inbox)).toMatchObject({ status, event: undefined });
  });

  test("says that it is unavailable to what is verified", async () => {
    const inbox = await openTestbed({ ...options, env: NOWHERE });
    const event = anInvoiceEvent();
    expect(await inbox.deliver(event)).toMatchObject({
      status: 503,
      outcome: "unavailable",
      event: event.id,
    });
  });
});

test("a hundred bad signatures open no session; the one good one behind them opens one", async () => {
  const inbox = await openTestbed();
  const url = new URL(inbox.databaseUrl);
  const database = url.pathname.slice(1);
  // Asked in another database, so that asking is not counted.
  url.pathname = "/postgres";
  const sessions = async (): Promise<unknown> => {
    const [row] = await query(
      url.href,
      `select (select sessions::int from pg_stat_database where datname = $1) as ended,
         (select count(*)::int from pg_stat_activity where datname = $1) as open`,
      [database],
    );
    return row;
  };
  const body = JSON.stringify(anInvoiceEvent());
  const header = `t=${Math.floor(Date.now() / 1000)},v1=${"0".repeat(64)}`;
  const bad = { body, headers: { "stripe-signature": header } };

  const lines = await logLines(async () => {
    const answers = await Promise.all(
      Array.from({ length: 100 }, () => inbox.post("/webhooks/stripe", bad)),
    );
    expect(answers.map(({ status }) => status)).toEqual(Array(100).fill(400));
  });
  expect(new Set(lines.map((line) => line["level"]))).toEqual(new Set(["warn"]));
  expect(await sessions()).toEqual({ ended: 0, open: 0 });

  expect(await inbox.deliver(body)).toMatchObject({ status: 200 });
  // A session is counted when it ends, a moment after its socket has closed.
  await vi.waitFor(async () => expect(await sessions()).toEqual({ ended: 1, open: 0 }), 10_000);
});

/** Events as an operator finds them: by what, in which order, page after page. */
import { beforeAll, describe, expect, test } from "vitest";
import { anOperator, type Operator } from "./operator.ts";
import { anInvoiceEvent, freshId } from "./testbed.ts";
import { waits } from "./waiting.ts";

interface Listed {
  readonly event_id: string;
  readonly endpoint: string;
  readonly received_at: string;
}

/** Every event that the pages show, in their order. */
async function listed({ get }: Operator, query: string, limit = 200): Promise<readonly Listed[]> {
  const all: Listed[] = [];
  let after = "";
  for (let pages = 0; pages < 200; pages++) {
    const { status, body } = await get(`/ops/api/events?limit=${limit}${query}${after}`);
    expect(status).toBe(200);
    expect(body.items.length).toBeLessThanOrEqual(limit);
    all.push(...body.items);
    if (body.next === null) return all;
    after = `&after=${body.next}`;
  }
  throw new Error("There is no end to it.");
}

const ids = (events: readonly Listed[]): readonly string[] => events.map((one) => one.event_id);

describe("a list", () => {
  let operator: Operator;
  const paid = anInvoiceEvent("invoice.paid", { id: "in_wanted", customer: "cus_wanted" });
  const again = anInvoiceEvent("invoice.updated", { id: "in_wanted", customer: "cus_wanted" });
  const other = anInvoiceEvent("invoice.paid", { id: "in_second", customer: "cus_wanted" });
  const customer = {
    ...anInvoiceEvent(),
    type: "customer.updated",
    data: { object: { id: "cus_wanted", object: "customer" } },
  };
  const elsewhere = { ...anInvoiceEvent(), account: "acct_other" };
  const broken = anInvoiceEvent("invoice.paid", { amountPaid: -1 });
  const unpaid = anInvoiceEvent("invoice.paid", { status: "open" });
  let waiting: { id: string };
  const inOrder: string[] = [];
  beforeAll(async () => {
    operator = await anOperator();
    const { inbox } = operator;
    for (const event of [paid, again, other, customer, broken, unpaid]) await inbox.deliver(event);
    await inbox.deliver(elsewhere, { endpoint: "connect" });
    await inbox.deliver(paid);
    waiting = await waits(inbox, { attempts: 2, lastError: "TypeError", availableIn: 60 });
    inOrder.push(
      waiting.id,
      elsewhere.id,
      unpaid.id,
      broken.id,
      customer.id,
      other.id,
      again.id,
      paid.id,
    );
    for (const [age, id] of inOrder.entries()) {
      await inbox.rows(
        "update webhook_inbox set received_at = date_trunc('day', now()) - $1 * interval '1 hour' where event_id = $2",
        [age, id],
      );
    }
  });

  test("is of all events, the newest first", async () => {
    expect(ids(await listed(operator, ""))).toEqual(inOrder);
  });

  test.each([1, 2, 3, 7, 8])(
    "of pages of %i has each event once, in the same order",
    async (limit) => {
      expect(ids(await listed(operator, "", limit))).toEqual(inOrder);
    },
  );

  test("says of each what it is, its state and since when", async () => {
    const { body } = await operator.get(`/ops/api/events?event_id=${paid.id}`);
    expect(body).toEqual({
      items: [
        {
          endpoint: "billing",
          event_id: paid.id,
          type: "invoice.paid",
          object_id: "in_wanted",
          state: "processed",
          reason: null,
          attempts: 1,
          duplicates: 1,
          received_at: expect.stringMatching(/:00\.000Z$/),
          age_seconds: expect.any(Number),
          processed_at: expect.any(String),
          parked_at: null,
          available_at: null,
        },
      ],
      next: null,
    });
    const [one] = await listed(operator, "&state=waiting");
    expect(one).toMatchObject({
      state: "waiting",
      reason: "TypeError",
      attempts: 2,
      available_at: expect.any(String),
    });
  });

  const found = (): Record<string, readonly string[]> => ({
    "state=waiting": [waiting.id],
    "state=needs_review": [unpaid.id, broken.id],
    "state=needs_review&reason=PermanentError:amount_paid_unusable": [broken.id],
    "state=ignored": [elsewhere.id, customer.id],
    "state=ignored&reason=no_handler": [elsewhere.id, customer.id],
    "state=ignored&reason=account": [],
    "state=processed": [other.id, again.id, paid.id],
    "endpoint=connect": [elsewhere.id],
    "endpoint=billing&state=ignored": [customer.id],
    "endpoint=unknown": [],
    "endpoint=unknown&state=processed": [],
    "type=never.seen&state=processed": [],
    "type=customer.updated": [customer.id],
    "type=invoice.paid&state=processed": [other.id, paid.id],
    "type=invoice.paid&endpoint=connect": [elsewhere.id],
    "type=invoice.paid&state=waiting": [waiting.id],
    "state=waiting&reason=TypeError": [waiting.id],
    "state=waiting&reason=RangeError": [],
    [`event_id=${broken.id}`]: [broken.id],
    [`event_id=${broken.id}&state=processed`]: [],
    [`event_id=${broken.id}&endpoint=connect`]: [],
    "object_id=in_wanted": [again.id, paid.id],
    "object_id=in_wanted&type=invoice.paid": [paid.id],
    "customer_id=cus_wanted": [customer.id, other.id, again.id, paid.id],
    "customer_id=cus_wanted&state=processed&type=invoice.paid": [other.id, paid.id],
    "customer_id=cus_wanted&object_id=in_second": [other.id],
    [`customer_id=cus_wanted&event_id=${again.id}`]: [again.id],
    [`customer_id=cus_wanted&event_id=${broken.id}`]: [],
    "customer_id=cus_nobody": [],
  });

  test.each([
    "state=waiting",
    "state=needs_review",
    "state=needs_review&reason=PermanentError:amount_paid_unusable",
    "state=ignored",
    "state=ignored&reason=no_handler",
    "state=ignored&reason=account",
    "state=processed",
    "endpoint=connect",
    "endpoint=billing&state=ignored",
    "endpoint=unknown",
    "endpoint=unknown&state=processed",
    "type=never.seen&state=processed",
    "type=customer.updated",
    "type=invoice.paid&state=processed",
    "type=invoice.paid&endpoint=connect",
    "type=invoice.paid&state=waiting",
    "state=waiting&reason=TypeError",
    "state=waiting&reason=RangeError",
    "object_id=in_wanted",
    "object_id=in_wanted&type=invoice.paid",
    "customer_id=cus_wanted",
    "customer_id=cus_wanted&state=processed&type=invoice.paid",
    "customer_id=cus_wanted&object_id=in_second",
    "customer_id=cus_nobody",
  ])("can be had with %s", async (query) => {
    for (const limit of [1, 50]) {
      const expected = found()[query];
      expect(ids(await listed(operator, `&${query}`, limit))).toEqual(expected);
      const oldestFirst = await listed(operator, `&${query}&order=oldest`, limit);
      expect(ids(oldestFirst)).toEqual(expected?.toReversed());
    }
  });

  test("can be had by the id of an event, with all else", async () => {
    for (const [query, expected] of Object.entries(found())) {
      if (query.includes("event_id="))
        expect(ids(await listed(operator, `&${query}`))).toEqual(expected);
    }
  });

  test("can be had from a time on, and up to one: the first is in it, the last is not", async () => {
    const [at, , , before] = await listed(operator, "");
    const query = `&since=${before?.received_at}&until=${at?.received_at}`;
    expect(ids(await listed(operator, query, 2))).toEqual(inOrder.slice(1, 4));
  });

  test.each([
    "state=unknown",
    "limit=0",
    "limit=201",
    "limit=x",
    "since=yesterday",
    "since=2026-13-01",
    "since=2026-02-31",
    "since=0000-01-01",
    "order=random",
    "reason=TypeError",
    "reason=TypeError&state=processed",
    "until=2026-11-29T25:00:00Z",
    "after=x",
    "after=WyJub3ciLCJhIiwiYiJd",
    // ["2026-99-01T00:00:00.000000Z","a","b"]
    "after=WyIyMDI2LTk5LTAxVDAwOjAwOjAwLjAwMDAwMFoiLCJhIiwiYiJd",
    "type=",
    "event_id=%00",
    `reason=${"x".repeat(256)}`,
    "colour=green",
  ])("cannot be had with %s, and says why", async (query) => {
    const { status, body } = await operator.get(`/ops/api/events?${query}`);
    expect(status).toBe(400);
    expect(body.error).toMatch(new RegExp(`^${query.split("=")[0]}: `));
  });

  test.each(["'; drop table webhook_inbox; --", "%27", "in_\u{1f600}", "*", "null"])(
    "finds nothing for %j, and breaks nothing",
    async (text) => {
      expect(await listed(operator, `&state=waiting&reason=${encodeURIComponent(text)}`)).toEqual(
        [],
      );
      for (const name of ["endpoint", "type", "event_id", "object_id", "customer_id"]) {
        expect(await listed(operator, `&${name}=${encodeURIComponent(text)}`)).toEqual([]);
      }
    },
  );
});

test("events of one moment, as a sweep stores them, are each on one page", async () => {
  const operator = await anOperator();
  const { inbox } = operator;
  await inbox.rows(`insert into webhook_inbox (endpoint, event_id, event_type, payload)
    select endpoint, 'evt_' || n, 'invoice.paid', '{}'
    from generate_series(1, 60) n, (values ('billing'), ('connect')) e (endpoint)`);
  for (const [query, count] of [
    ["", 120],
    ["&order=oldest", 120],
    ["&state=waiting", 120],
    ["&endpoint=connect", 60],
    ["&endpoint=connect&order=oldest", 60],
    ["&state=waiting&endpoint=connect", 60],
    ["&type=invoice.paid", 120],
  ] as const) {
    for (const limit of [7, 30, 60]) {
      const events = await listed(operator, query, limit);
      expect(new Set(events.map((one) => `${one.endpoint} ${one.event_id}`)).size).toBe(count);
      expect(events.length).toBe(count);
    }
  }
});

test("what is rare among many is found, though a page looks at so many only", async () => {
  const operator = await anOperator();
  await operator.inbox.rows(`insert into webhook_inbox
      (endpoint, event_id, event_type, payload, received_at, processed_at, outcome, ignored_reason)
    select 'billing', 'evt_' || n, 'invoice.paid', '{}', now() - n * interval '1 s', now(),
      case when n % 900 = 0 then 'ignored' else 'processed' end, case when n % 900 = 0 then 'livemode' end
    from generate_series(1, 12000) n`);
  const rare = Array.from({ length: 13 }, (_, n) => `evt_${(n + 1) * 900}`);
  const query = "&type=invoice.paid&endpoint=billing&state=ignored";
  expect(ids(await listed(operator, query, 50))).toEqual(rare);
  expect(ids(await listed(operator, `${query}&order=oldest`, 5))).toEqual(rare.toReversed());
  const { body } = await operator.get("/ops/api/events?state=processed&endpoint=billing&limit=1");
  expect(body.items).toHaveLength(1);
  const many = await listed(operator, "&state=processed&endpoint=billing", 200);
  expect(new Set(ids(many)).size).toBe(12_000 - 13);
  expect(many).toHaveLength(12_000 - 13);
});

test("each of many streams ends somewhere else, and no event is lost between pages", async () => {
  const operator = await anOperator();
  await operator.inbox.rows(`insert into webhook_inbox
      (endpoint, event_id, event_type, payload, received_at, processed_at, outcome, ignored_reason)
    select 'billing', 'evt_' || n, 'type.' || (n % 23) * (n % 23) / 40, '{}',
      date_trunc('hour', now()) - (n / 3) * interval '1 s', now(),
      case when n % 7 = 0 then 'ignored' else 'processed' end, case when n % 7 = 0 then 'livemode' end
    from generate_series(1, 6001) n`);
  for (const [query, condition] of [
    ["", "true"],
    ["&endpoint=billing", "true"],
    ["&endpoint=billing&state=processed", "outcome = 'processed'"],
    ["&state=processed", "outcome = 'processed'"],
    ["&state=ignored", "outcome = 'ignored'"],
    ["&type=type.0", "event_type = 'type.0'"],
    ["&type=type.0&state=ignored", "event_type = 'type.0' and outcome = 'ignored'"],
  ] as const) {
    for (const [order, dir] of [
      ["newest", "desc"],
      ["oldest", "asc"],
    ] as const) {
      const rows = await operator.inbox.rows(`select event_id from webhook_inbox where ${condition}
        order by received_at ${dir}, endpoint ${dir}, event_id ${dir}`);
      const expected = rows.map((row) => row["event_id"]);
      expect(ids(await listed(operator, `${query}&order=${order}`, 199))).toEqual(expected);
    }
  }
});

test("a customer's events are found before any invoice tells of them, however much stands there", async () => {
  const operator = await anOperator({ env: { PROCESSING: "paused" } });
  const { inbox } = operator;
  const waiting = anInvoiceEvent("invoice.paid", { customer: "cus_new" });
  await inbox.deliver(waiting);
  const expanded = { id: "cus_new", object: "customer", description: "x".repeat(10_000) };
  const odd = anInvoiceEvent();
  const object = { ...odd.data?.object, customer: expanded };
  expect(await inbox.deliver({ ...odd, data: { object } })).toMatchObject({ outcome: "stored" });
  await inbox.tick({ PROCESSING: "on" });
  const parkedLater = anInvoiceEvent("invoice.paid", { customer: "cus_new", amountPaid: -1 });
  await inbox.deliver(parkedLater);
  expect(ids(await listed(operator, "&customer_id=cus_new&state=waiting"))).toEqual([
    parkedLater.id,
  ]);
  await inbox.tick({ PROCESSING: "on" });
  expect(ids(await listed(operator, "&customer_id=cus_new&state=needs_review"))).toEqual([
    parkedLater.id,
  ]);
  expect(ids(await listed(operator, "&customer_id=cus_new"))).toEqual([
    parkedLater.id,
    odd.id,
    waiting.id,
  ]);
});

test("a customer that is expanded in an event that needs review is found by its id", async () => {
  const operator = await anOperator();
  const event = anInvoiceEvent("invoice.paid", { status: "open" });
  for (const customer of [
    { id: "cus_whole", name: "x".repeat(5_000) },
    { id: "cus_whole", deleted: true },
  ]) {
    const object = { ...event.data?.object, id: freshId("in"), customer };
    const whole = { ...event, id: freshId("evt"), data: { object } };
    expect(await operator.inbox.deliver(whole)).toMatchObject({ outcome: "needs_review" });
    expect(ids(await listed(operator, "&customer_id=cus_whole&state=needs_review"))).toContain(
      whole.id,
    );
  }
});

test("whatever Stripe may call a type, an object or a customer is found by it, to the letter", async () => {
  const operator = await anOperator();
  for (const text of ["\u{1f600}".repeat(200), "two\nlines", " with blanks ", "x".repeat(255)]) {
    const event = anInvoiceEvent("invoice.paid", { id: text, customer: text });
    await operator.inbox.deliver(event);
    const typed = { ...anInvoiceEvent(), type: text };
    await operator.inbox.deliver(typed);
    const sought = encodeURIComponent(text);
    expect(ids(await listed(operator, `&object_id=${sought}`))).toEqual([event.id]);
    expect(ids(await listed(operator, `&customer_id=${sought}`))).toEqual([event.id]);
    expect(ids(await listed(operator, `&type=${sought}`))).toEqual([typed.id]);
  }
});

test("what is given twice is refused: which of them is meant?", async () => {
  const { get } = await anOperator();
  for (const path of [
    "events?state=waiting&state=ignored",
    "events/requeueable?reason=a&reason=b",
    "messages?limit=1&limit=2",
  ]) {
    const { status, body } = await get(`/ops/api/${path}`);
    expect(status).toBe(400);
    expect(body.error).toMatch(/^\w+: is given twice$/);
  }
});

test("an id of any length leads to the next page", async () => {
  const operator = await anOperator();
  for (const n of [1, 2, 3]) {
    await operator.inbox.deliver({ ...anInvoiceEvent(), id: `evt_${n}${"x".repeat(250)}` });
  }
  expect(await listed(operator, "", 1)).toHaveLength(3);
});

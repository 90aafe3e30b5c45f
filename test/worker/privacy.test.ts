/**
 * Answers, log lines and error columns carry ids, types and codes. What a payload holds, and what a
 * secret is, appears in none of them, however a delivery ends.
 */
import { sql } from "drizzle-orm";
import { describe, expect, test } from "vitest";
import type { Endpoint } from "../../src/endpoints.ts";
import { anInvoiceEvent, logLines, openTestbed, roadTo, SECRET } from "./testbed.ts";

const MARK = "Zebulon";
type PaidHandler = NonNullable<Endpoint["handlers"]["invoice.paid"]>;

/** A paid invoice whose customer, e-mail, metadata, keys and texts all bear the mark. */
function markedEvent(): ReturnType<typeof anInvoiceEvent> {
  const event = anInvoiceEvent();
  const personal = {
    customer: { id: "cus_test", name: MARK, email: `${MARK}@example.test` },
    customer_email: `${MARK}@example.test`,
    customer_name: MARK,
    metadata: { note: MARK, [MARK]: `${MARK}\u0000` },
  };
  return { ...event, note: MARK, data: { object: { ...event.data?.object, ...personal } } };
}

interface Ending {
  readonly ending: string;
  readonly outcome: string;
  readonly handler?: PaidHandler;
  readonly change?: (body: string) => string;
  readonly secret?: string;
  readonly env?: object;
}

const fail =
  (make: () => unknown): PaidHandler =>
  () => {
    throw make();
  };
const ENDINGS: readonly Ending[] = [
  { ending: "booked", outcome: "processed" },
  {
    ending: "of no known type",
    outcome: "ignored",
    change: (body) => body.replace('"invoice.paid"', '"x.y"'),
  },
  { ending: "signed by somebody else", outcome: "invalid", secret: `whsec_${MARK}` },
  { ending: "cut short", outcome: "invalid", change: (body) => body.slice(0, -1) },
  {
    ending: "with a name where JSON has none",
    outcome: "invalid",
    change: () => `{"note":${MARK}}`,
  },
  {
    ending: "with an id of several words",
    outcome: "invalid",
    change: (body) => body.replace(/evt_/, `${MARK} `),
  },
  {
    ending: "with an object of another kind",
    outcome: "invalid",
    change: (body) => body.replace('"event"', `"${MARK}"`),
  },
  { ending: "too large", outcome: "too_large", change: () => MARK.repeat(700_000) },
  {
    ending: "whose handler throws an error",
    outcome: "failed",
    handler: fail(() => new Error(MARK)),
  },
  { ending: "whose handler throws a text", outcome: "failed", handler: fail(() => MARK) },
  { ending: "whose handler throws the event", outcome: "failed", handler: fail(markedEvent) },
  {
    ending: "whose handler throws an error that is named after a person",
    outcome: "failed",
    handler: fail(() => Object.assign(new Error(MARK), { name: `Error: ${MARK}`, code: MARK })),
  },
  {
    ending: "whose handler returns something odd",
    outcome: "failed",
    handler: () => [sql`${MARK}`, JSON.parse(`"${MARK}"`)],
  },
  {
    ending: "whose write Postgres refuses",
    outcome: "failed",
    handler: () => [sql`select ${MARK}::int`],
  },
  {
    ending: "whose read Postgres refuses",
    outcome: "failed",
    handler: async (_, tx) => void (await tx.execute(sql`select ${MARK}::int`)),
  },
  {
    ending: "whose write the driver refuses",
    outcome: "failed",
    handler: () => [
      sql`select ${{
        toPostgres: () => {
          throw new Error(MARK);
        },
      }}`,
    ],
  },
  { ending: "while a setting is wrong", outcome: "unavailable", env: { STRIPE_LIVEMODE: MARK } },
  {
    ending: "while the secret is a blank",
    outcome: "unavailable",
    env: { STRIPE_WEBHOOK_SECRET: " " },
  },
  {
    ending: "while the database is away",
    outcome: "unavailable",
    env: roadTo(`postgres://${MARK}:${MARK}@127.0.0.1:1/${MARK}`),
  },
];

describe("a name in the payload stays there when the delivery is", () => {
  test.each(ENDINGS)("$ending", async ({ outcome, handler, change, secret, env }) => {
    const paid: PaidHandler = handler ?? (() => []);
    const inbox = await openTestbed({
      endpoints: {
        billing: {
          secrets: "STRIPE_WEBHOOK_SECRET",
          accounts: "own",
          handlers: { "invoice.paid": paid },
        },
      },
      env: { ...env },
    });
    const json = JSON.stringify(markedEvent());
    const body = change?.(json) ?? json;
    expect(body).toContain(MARK);

    const heard: string[] = [];
    const lines = await logLines(async () => {
      for (let delivery = 0; delivery < 2; delivery++) {
        const answer = await inbox.deliver(body, { secret: secret ?? SECRET });
        heard.push(answer.text, JSON.stringify([...answer.headers]));
        if (delivery === 0) expect(answer).toMatchObject({ outcome });
      }
    });
    expect(lines).toHaveLength(2);
    const columns = "endpoint, event_id, event_type, object_id, last_error, ignored_reason";
    heard.push(
      JSON.stringify(lines),
      JSON.stringify(await inbox.rows(`select ${columns} from webhook_inbox`)),
    );
    for (const text of heard) {
      expect(text).not.toContain(MARK);
      expect(text).not.toContain(SECRET);
      expect(text).not.toMatch(/\bat \S+ \(|\.ts:\d+|stack/);
    }
  });

  test("broken off by its sender", async () => {
    const inbox = await openTestbed();
    const body = new ReadableStream({
      pull: (controller) => controller.error(new Error(MARK)),
    });
    const lines = await logLines(async () => {
      const answer = await inbox.post("/webhooks/stripe", { body });
      expect(answer).toMatchObject({ status: 400, text: '{"outcome":"invalid"}' });
    });
    expect(lines).toEqual([expect.objectContaining({ level: "warn", status: 400 })]);
    expect(JSON.stringify(lines)).not.toContain(MARK);
  });
});

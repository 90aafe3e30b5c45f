/** DATABASE_URL, where no Hyperdrive is bound: what is taken, and what is refused by name. */
import { describe, expect, inject, test } from "vitest";
import { connect } from "../../src/db/connect.ts";
import { anInvoiceEvent, logLines, openTestbed, roadTo } from "./testbed.ts";

/** Recognisable, in order not to be found in a log line. */
const ODD = "pw-unheard-of";

async function expectRefused(env: Readonly<Record<string, unknown>>, setting: string) {
  const inbox = await openTestbed({ env: { HYPERDRIVE: undefined, ...env } });
  const lines = await logLines(async () => {
    const answer = await inbox.deliver(anInvoiceEvent());
    expect(answer).toMatchObject({ status: 503, text: '{"outcome":"unavailable"}' });
  });
  expect(lines).toEqual([expect.objectContaining({ level: "error", status: 503, setting })]);
  expect(JSON.stringify(lines)).not.toContain(ODD);
  return lines[0];
}

test.each([
  "",
  " ",
  ODD,
  `mysql://inbox:${ODD}@127.0.0.1/inbox`,
  `https://inbox:${ODD}@127.0.0.1/inbox`,
  `postgres://inbox:${ODD}@127.0.0.1:port/inbox`,
  `postgres://inbox:${ODD}@127.0.0.1:99999/inbox`,
  `postgres://inbox:${ODD}@/inbox`,
  `postgres://127.0.0.1/inbox?password=${ODD}`,
  `postgres://${ODD}@127.0.0.1/inbox`,
  `postgres://${ODD}:@127.0.0.1/inbox`,
  `postgres://inbox:${ODD}@127.0.0.1`,
  `postgres://inbox:${ODD}@127.0.0.1/`,
  `postgres://inbox:${ODD}%@127.0.0.1/inbox`,
  `psql 'postgres://inbox:${ODD}@127.0.0.1/inbox'`,
  { connectionString: `postgres://inbox:${ODD}@127.0.0.1/inbox` },
  null,
])("as %j is refused", async (value) => {
  await expectRefused({ DATABASE_URL: value }, "DATABASE_URL");
});

test.each([
  "",
  ODD,
  "127.0.0.1:1234",
  `http://127.0.0.1/${ODD}`,
  `ws://${ODD}.test/`,
  `ws://127.0.0.1.${ODD}.test/`,
  `ws://127.0.0.1@${ODD}.test/`,
  `wss://${ODD}@inbox.test/`,
  `wss://:${ODD}@inbox.test/`,
  `wss://inbox.test/?token=${ODD}`,
  `wss://inbox.test/#${ODD}`,
  1234,
])(
  "NEON_WS_PROXY as %j, which would not keep a password secret, or is more than a place, is refused",
  async (proxy) => {
    const env = {
      ...roadTo(`postgres://inbox:${ODD}@127.0.0.1/inbox`, "neon"),
      NEON_WS_PROXY: proxy,
    };
    await expectRefused(env, "NEON_WS_PROXY");
  },
);

test("where there is neither, both are named", async () => {
  const line = await expectRefused({}, "HYPERDRIVE");
  expect(line).toMatchObject({ detail: expect.stringContaining("and DATABASE_URL not set") });
});

test("where both are there, Hyperdrive is taken", async () => {
  const inbox = await openTestbed({
    road: "hyperdrive",
    env: { DATABASE_URL: ODD, NEON_WS_PROXY: ODD },
  });
  expect(await inbox.deliver(anInvoiceEvent())).toMatchObject({ outcome: "processed" });
});

describe("what it says of TLS is no different from what is done anyway", () => {
  test.each([
    "sslmode=disable",
    "sslmode=prefer",
    "sslmode=require",
    "sslmode=verify-full",
    "sslmode=require&channel_binding=require",
    "sslmode=verify-full&sslrootcert=system",
    "sslmode=verify-full&sslrootcert=/no/such/file.pem",
    "ssl=true&application_name=psql",
  ])("%s", async (parameters) => {
    const inbox = await openTestbed({
      road: "neon",
      route: (url) => `${url.replace("postgres:", "postgresql:")}?${parameters}\n`,
    });
    expect(await inbox.deliver(anInvoiceEvent())).toMatchObject({ outcome: "processed" });
  });
});

test("no other place is gone to than the one in front of its parameters", async () => {
  const inbox = await openTestbed({
    road: "neon",
    route: (url) => `${url}?host=${ODD}.test&port=1&user=${ODD}&dbname=${ODD}`,
  });
  expect(await inbox.deliver(anInvoiceEvent())).toMatchObject({ outcome: "processed" });
});

test("a bridge that is not there is a database that is not there", async () => {
  const inbox = await openTestbed({
    road: "neon",
    env: { NEON_WS_PROXY: "ws://127.0.0.1:1/" },
    route: (url) => url.replace(/:[^:@]*@/, `:${ODD}@`),
  });
  const lines = await logLines(async () => {
    expect(await inbox.deliver(anInvoiceEvent())).toMatchObject({ status: 503 });
  });
  const detail = expect.stringContaining("no WebSocket opens");
  expect(lines).toEqual([expect.objectContaining({ error: "DatabaseUnavailable", detail })]);
  expect(JSON.stringify(lines)).not.toContain(ODD);
});

/** It never does, so that whoever waited for it would wait for ever. */
test("a deadline cuts a WebSocket whose other side never agrees to the close", async () => {
  const connecting = connect(
    {
      connectionString: inject("postgresUrl"),
      pipeline: true,
      webSocket: { proxy: new URL(inject("deafBridgeUrl")) },
    },
    AbortSignal.timeout(500),
  );
  await expect(connecting).rejects.toThrow("it cannot be connected to");
});

/**
 * A database that cannot be used is our fault: 503, and one error line with the SQLSTATE where there
 * is one. Neither the answer nor the line holds the connection string or its password.
 */
import { describe, expect, inject, test } from "vitest";
import { anInvoiceEvent, logLines, openTestbed, query, roadTo } from "./testbed.ts";

/** Password, and the name that Postgres repeats when it does not know it. */
const PASSWORD = "pw-unheard-of";

type Bindings = Readonly<Record<string, unknown>>;

async function expectUnavailable(env: Bindings, said: object): Promise<void> {
  const inbox = await openTestbed({ env });
  const event = anInvoiceEvent();
  const lines = await logLines(async () => {
    const answer = await inbox.deliver(event);
    expect(answer).toMatchObject({ status: 503, outcome: "unavailable" });
    expect(answer.text).not.toContain(PASSWORD);
  });
  expect(lines).toEqual([
    expect.objectContaining({ level: "error", status: 503, outcome: "unavailable", ...said }),
  ]);
  expect(JSON.stringify(lines)).not.toMatch(/pw-unheard-of|postgres:\/\/|127\.0\.0\.1/);
  expect(await inbox.books()).toMatchObject({ inbox: 0 });
}

/** The way to an existing database of this test, but for what is changed. */
async function roadWhere(change: (url: URL) => void): Promise<Bindings> {
  const { databaseUrl } = await openTestbed();
  const url = new URL(databaseUrl);
  url.password = PASSWORD;
  change(url);
  return roadTo(url.href);
}

describe("a binding that is none", () => {
  test.each([
    { as: "missing", binding: undefined },
    { as: "null", binding: null },
    { as: "a plain text", binding: `postgres://inbox:${PASSWORD}@127.0.0.1:1/inbox` },
    { as: "without a connection string", binding: { host: "127.0.0.1" } },
    { as: "with an empty connection string", binding: { connectionString: "" } },
  ])("$as", ({ binding }) =>
    expectUnavailable({ HYPERDRIVE: binding, DATABASE_URL: undefined }, { setting: "HYPERDRIVE" }),
  );

  test("is refused before the body is read", async () => {
    const inbox = await openTestbed({ env: { HYPERDRIVE: undefined, DATABASE_URL: undefined } });
    expect(await inbox.post("/webhooks/stripe", { body: "x" })).toMatchObject({ status: 503 });
  });
});

describe("a database that is not there for us", () => {
  const error = "DatabaseUnavailable";

  test("nobody listens", async () => {
    const to = await roadWhere((url) => void (url.port = "1"));
    await expectUnavailable(to, { error });
  });

  test("no such database", async () => {
    const to = await roadWhere((url) => void (url.pathname = `/${PASSWORD}`));
    await expectUnavailable(to, { error, sqlstate: "3D000" });
  });

  test("no such user", async () => {
    const to = await roadWhere((url) => void (url.username = PASSWORD));
    await expectUnavailable(to, { error, sqlstate: "28000" });
  });

  test("no connections allowed", async () => {
    const { databaseUrl } = await openTestbed();
    const url = new URL(databaseUrl);
    const name = url.pathname.slice(1);
    url.pathname = "/postgres";
    await query(url.href, `alter database ${name} with allow_connections false`);
    const to = await roadWhere((own) => void (own.pathname = `/${name}`));
    await expectUnavailable(to, { error, sqlstate: "55000" });
  });

  test("no tables yet", async () => {
    const to = await roadWhere((url) => void (url.pathname = "/postgres"));
    await expectUnavailable(to, { error, sqlstate: "42P01" });
  });

  test("no right to write", async () => {
    const to = await roadWhere((url) => {
      url.searchParams.set("options", "-c default_transaction_read_only=on");
    });
    await expectUnavailable(to, { error, sqlstate: "25006" });
  });

  test("a connection string that is no URL", () =>
    expectUnavailable(roadTo(`postgres://inbox:${PASSWORD}@127.0.0.1:port/inbox`), {}));

  describe.each(["scram", "cleartext"] as const)("a password, asked for by %s", (method) => {
    test("that is right", async () => {
      const { databaseUrl } = await openTestbed();
      const url = new URL(inject("guardedUrls")[method]);
      url.pathname = new URL(databaseUrl).pathname;
      const inbox = await openTestbed({ databaseUrl, env: roadTo(url.href) });
      expect(await inbox.deliver(anInvoiceEvent())).toMatchObject({ outcome: "processed" });
    });

    test("that is wrong", async () => {
      const todo = expect.stringContaining("The password is wrong");
      const to = await roadWhere((url) => {
        url.username = new URL(inject("guardedUrls")[method]).username;
      });
      await expectUnavailable(to, { error, sqlstate: "28P01", todo });
    });
  });
});

test("once the database is back, the redelivery is booked", async () => {
  const { databaseUrl } = await openTestbed();
  const event = anInvoiceEvent();
  const to = await roadWhere((url) => void (url.port = "1"));
  const during = await openTestbed({ databaseUrl, env: to });
  expect(await during.deliver(event)).toMatchObject({ status: 503, event: event.id });
  const after = await openTestbed({ databaseUrl });
  expect(await after.deliver(event)).toMatchObject({ status: 200, outcome: "processed" });
  expect(await after.books()).toMatchObject({ inbox: 1, entries: 1 });
});

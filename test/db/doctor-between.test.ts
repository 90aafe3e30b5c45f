/** The doctor: what a pooler, or whatever else stands before the database, does to transactions. */
import { expect, inject, onTestFinished, test, vi } from "vitest";
import { type Fate, type Message, type Proxy, startProxy } from "../local/proxy.ts";
import { startCachingPooler } from "./caching-pooler.ts";
import { aDeployment, type Complaints, fails, warns } from "./diagnosing.ts";

/** What is said of a database that is reached by this way. */
async function by(way: Proxy, env: Readonly<Record<string, unknown>> = {}): Promise<Complaints> {
  onTestFinished(way.close);
  const { complaints } = await aDeployment({ route: way.route, env });
  return complaints();
}

/** One text for another in what the client says; of one length, which the protocol tells. */
function rewriting(text: string, other: string): Promise<Proxy> {
  if (text.length !== other.length) throw new Error("The message would be of another length.");
  const fate = ({ from, bytes }: Message): Fate =>
    from === "client" && bytes.includes(text)
      ? { instead: Buffer.from(bytes.toString("latin1").replaceAll(text, other), "latin1") }
      : "pass";
  return startProxy(inject("postgresUrl"), { fate });
}

test.each([
  ["serializable", "read committed", "serializable  "],
  ["repeatable read", "read committed; ", "repeatable read;"],
])("an isolation that is changed on the way is named: %s", async (isolation, asked, given) => {
  expect(await by(await rewriting(asked, given))).toEqual({
    transactions: fails(`they run at ${isolation}`, "Find what stands between"),
  });
});

test("settings that outlive their transaction are named", async () => {
  expect(await by(await rewriting("set local ", "set       "))).toEqual({
    "transaction-local settings": fails("they outlive", "Find what stands between"),
  });
});

test.each([
  ["all", "; set local lock", " --et local lock"],
  ["the mark of an open transaction", "stripe_inbox.transaction = ", "stripe_inbox.transactiom = "],
  ["the statement timeout", "statement_timeout = '7654'", "statement_timeout = '9999'"],
  ["the lock timeout", "lock_timeout = '3210'", "lock_timeout = '9999'"],
])("settings that do not reach the transaction are named: %s", async (_, text, other) => {
  expect(await by(await rewriting(text, other))).toEqual({
    "transaction-local settings": fails("do not reach", "must be in transaction mode"),
  });
});

/** Half of a round trip; long enough for eight of them to be told from one. */
const DELAY_MS = 4;

/** Lets through what ends with a Sync once all before it is answered. */
function oneByOne(databaseUrl: string): Promise<Proxy> {
  let ready = Promise.withResolvers<void>();
  let isUnderWay = false;
  const fate = async ({ from, type }: Message): Promise<Fate> => {
    if (from === "server" && type === "Z") ready.resolve();
    if (from === "client" && type === "S") isUnderWay = false;
    if (from === "client" && /^[QP]$/.test(type) && !isUnderWay) {
      isUnderWay = type === "P";
      await ready.promise;
      ready = Promise.withResolvers();
    }
    return "pass";
  };
  return startProxy(databaseUrl, { fate });
}

test("a way that sends statements one by one is named", async () => {
  const far = await startProxy(inject("postgresUrl"), { delayMs: DELAY_MS });
  onTestFinished(far.close);
  const way = await oneByOne(far.route(inject("postgresUrl")));
  expect(await by(way)).toEqual({
    pipelining: warns("it gains nothing", "Something in between sends statements one by one"),
  });
});

test("a way that is merely long is nothing wrong", async () => {
  const way = await startProxy(inject("postgresUrl"), { delayMs: DELAY_MS });
  expect(await by(way)).toEqual({});
});

test("PIPELINE = off is named for what it costs", async () => {
  const { complaints } = await aDeployment({ env: { PIPELINE: "off" } });
  expect(await complaints()).toEqual({
    pipelining: warns("off; a round trip takes", "Without PIPELINE = off"),
  });
});

test("a cache that answers with the past is named, at every examination", async () => {
  const way = await startCachingPooler(inject("postgresUrl"));
  onTestFinished(way.close);
  const { complaints } = await aDeployment({ route: way.route });
  const said = {
    "query caching": fails("a SELECT was answered with the past", "--caching-disabled true"),
  };
  expect(await complaints()).toEqual(said);
  expect(await complaints()).toEqual(said);
});

test("a connection that is lost on the way is the database's fault, once, and what was seen stays", async () => {
  const way = await startProxy(inject("postgresUrl"), {
    fate: ({ from, bytes }) =>
      from === "client" && bytes.includes("server_encoding") ? "cut before" : "pass",
  });
  onTestFinished(way.close);
  const { complaints, examine } = await aDeployment({ route: way.route });
  expect(await complaints()).toEqual({ database: fails("the connection was lost", "Is it up") });
  const { findings } = await examine();
  expect(findings.map(({ check }) => check)).toContain("privileges");
  expect(findings.map(({ check }) => check)).not.toContain("sweep");
});

test("a database that falls silent ends the examination in time, and what was seen stays", async () => {
  const silent = Promise.withResolvers<void>();
  const way = await startProxy(inject("postgresUrl"), {
    fate: ({ from, bytes }) => {
      if (from === "server" || !bytes.includes("server_encoding")) return "pass";
      silent.resolve();
      return "silence";
    },
  });
  onTestFinished(way.close);
  // Stripe is not asked: what follows is not its time.
  const { examine } = await aDeployment({ route: way.route, env: { STRIPE_API_KEY: undefined } });
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  onTestFinished(() => void vi.useRealTimers());
  const examined = examine();
  await silent.promise;
  await vi.advanceTimersByTimeAsync(26_000);
  const { ok, findings } = await examined;
  expect(ok).toBe(false);
  expect(findings).toContainEqual({
    check: "database",
    ...fails("no answer within 15000 ms", "Is it up"),
  });
  expect(findings.map(({ check }) => check)).toContain("privileges");
});

test("a transaction pooler of the usual kind is nothing wrong", async (context) => {
  const port = inject("poolerPort");
  if (port === null) return context.skip();
  const route = (databaseUrl: string): string => {
    const url = new URL(databaseUrl);
    url.port = String(port);
    return url.href;
  };
  const { complaints } = await aDeployment({ route });
  expect(await complaints()).toEqual({});
});

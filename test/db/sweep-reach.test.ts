/** When a sweep begins, and how far back it looks. */
import { expect, test } from "vitest";
import { logLines } from "../worker/testbed.ts";
import { runCli } from "./cli.ts";
import { aPayment, HOUR, openReconciled, sweepRows, sweepsAge } from "./reconciled.ts";

test("what is on its way is left alone for 15 minutes; what is 29 days old is found", async () => {
  const { inbox, happened } = await openReconciled();
  const [young, ripe, old] = [aPayment(), aPayment(), aPayment()];
  happened({ minutes: 14 }, young);
  happened({ minutes: 16 }, ripe);
  happened({ minutes: 29 * 24 * 60 }, old);
  await inbox.tick();
  const stored = await inbox.rows("select event_id from webhook_inbox");
  expect(new Set(stored.map((row) => row["event_id"]))).toEqual(new Set([ripe.id, old.id]));
});

test("SWEEP_SINCE says what was before us", async () => {
  const { inbox, happened } = await openReconciled({
    env: { SWEEP_SINCE: new Date(Date.now() - 5 * 86_400_000).toISOString().slice(0, 10) },
  });
  happened({ minutes: 4 * 24 * 60 }, aPayment());
  happened({ minutes: 7 * 24 * 60 }, aPayment());
  await inbox.tick();
  expect(await inbox.books()).toMatchObject({ inbox: 1 });
});

test("the next walk begins an hour later, an hour before where the last one ended", async () => {
  const reconciled = await openReconciled();
  const { inbox, api, happened } = reconciled;
  await inbox.tick();
  happened(HOUR, aPayment());
  await inbox.tick();
  expect(api.lists.requests).toHaveLength(1);
  await sweepsAge(reconciled, "59 minutes");
  await inbox.tick();
  expect(api.lists.requests).toHaveLength(1);
  await sweepsAge(reconciled, "2 minutes");
  await inbox.tick();
  expect(await sweepRows(reconciled)).toMatchObject([{ missing: 0 }, { missing: 1, events: 1 }]);
  const overlap =
    await inbox.rows(`select extract(epoch from first.window_to - next.window_from)::int
    as seconds from sweep_runs first, sweep_runs next where first.id = 1 and next.id = 2`);
  expect(overlap).toEqual([{ seconds: 3_600 }]);
});

test("a sweep that a person asks for begins at once, from the day given, and begins anew one under way", async () => {
  const reconciled = await openReconciled();
  const { inbox, happened, settle } = reconciled;
  await inbox.tick();
  happened({ minutes: 10 * 24 * 60 }, aPayment());
  const since = new Date(Date.now() - 20 * 86_400_000);
  const ran = await runCli("sweep", inbox, "--since", since.toISOString().slice(0, 10));
  expect(ran).toMatchObject({ status: 0, text: expect.stringContaining("next tick") });
  await settle();
  expect(await sweepRows(reconciled)).toMatchObject([{ missing: 0 }, { missing: 1 }]);
  expect(await inbox.books()).toMatchObject({ entries: 1 });

  await inbox.rows(`insert into sweep_runs (account, window_from, window_to, cursor, pages)
    values ('own', now() - interval '1 hour', now() - interval '30 minutes', 'evt_x', 4)`);
  await runCli("sweep", inbox, "--since", since.toISOString().slice(0, 10));
  expect(
    await inbox.rows(`select cursor, window_from < now() - interval '19 days' as wide
      from sweep_runs where completed_at is null`),
  ).toEqual([{ cursor: null, wide: true }]);
});

test("a sweep that is asked for leaves no hole behind the last complete one", async () => {
  const reconciled = await openReconciled();
  const { inbox, happened, settle } = reconciled;
  await inbox.tick();
  await sweepsAge(reconciled, "5 days");
  happened({ minutes: 3 * 24 * 60 }, aPayment());
  await runCli("sweep", inbox, "--since", "1d");
  await settle();
  expect(await inbox.books()).toMatchObject({ entries: 1 });
});

test("one that is asked for before any was complete goes as far back as any", async () => {
  const { inbox, happened, settle } = await openReconciled();
  happened({ minutes: 20 * 24 * 60 }, aPayment());
  await runCli("sweep", inbox, "--since", "1d");
  await settle();
  expect(await inbox.books()).toMatchObject({ entries: 1 });
});

test("no sweep reaches behind the time for which keys are kept", async () => {
  const { inbox, happened, settle } = await openReconciled({
    env: { RETENTION_DAYS: "7", TOMBSTONE_DAYS: "7" },
  });
  const [forgotten, known] = [aPayment(), aPayment()];
  happened({ minutes: 7 * 24 * 60 }, forgotten);
  happened({ minutes: 5 * 24 * 60 }, known);
  await runCli("sweep", inbox, "--since", "20d");
  await settle();
  expect(await inbox.rows("select event_id from sweep_gaps")).toEqual([{ event_id: known.id }]);
});

test.each([
  ["no day", []],
  ["what is no day", ["--since", "last week"]],
  ["a day to come", ["--since", "2999-01-01"]],
  ["no account's id", ["--since", "2026-11-01", "--account", "cus_1"]],
  ["an account that nobody sweeps", ["--since", "2026-11-01", "--account", "acct_1"]],
])("a sweep from %s is refused, with the help", async (_, flags) => {
  const { inbox } = await openReconciled();
  const ran = await runCli("sweep", inbox, ...flags);
  expect(ran).toMatchObject({
    status: 1,
    text: expect.stringContaining("npm run sweep -- --since"),
  });
  expect(await sweepRows({ inbox })).toEqual([]);
});

test.each([
  ["26 days", ["sweep_overdue"]],
  ["24 days", []],
])("a last complete sweep of %s ago is %j", async (ago, said) => {
  let failing = false;
  const reconciled = await openReconciled({
    api: { listFault: () => (failing ? { status: 500 } : null) },
  });
  const { inbox } = reconciled;
  await inbox.tick();
  await sweepsAge(reconciled, ago);
  failing = true;
  const lines = await logLines(() => inbox.tick());
  const overdue = lines.filter(({ message }) => message === "sweep_overdue");
  expect(overdue.map(({ message }) => message)).toEqual(said);
  for (const line of overdue) {
    expect(line).toMatchObject({ level: "error", account: "own", days: 26, error: "Stripe:500" });
  }
});

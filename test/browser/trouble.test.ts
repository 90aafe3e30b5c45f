/** What is slow, down, very many or very long: each has its page. */
import { describe, expect, inject, onTestFinished, test } from "vitest";
import { rowsOf, textOf, useSite } from "./site.ts";

describe.skipIf(inject("chromium") === null)("a page", () => {
  const site = useSite();

  test("that takes long says so at once, and then what it says", async () => {
    const { logIn, wire } = site();
    const page = await logIn();
    wire.hold();
    onTestFinished(wire.release);
    const going = page.goto("/ops/review", { waitUntil: "load" });
    const reading = page.getByText("Reading. It takes longer than usual");
    await reading.waitFor();
    expect(await page.getByRole("navigation").isVisible()).toBe(true);
    wire.release();
    expect((await going)?.status()).toBe(200);
    expect(await textOf(page)).toContain("No event needs review.");
    expect(await reading.isVisible()).toBe(false);
  });

  test("that took long and came to nothing says why", async () => {
    const { logIn, wire } = site();
    const page = await logIn();
    wire.hold();
    onTestFinished(wire.release);
    const going = page.goto("/ops/review", { waitUntil: "load" });
    await page.getByText("Reading.").waitFor();
    wire.cut();
    await going;
    expect(await textOf(page)).toContain("This cannot be read now.");
  });

  test("without a database says so, with what to do, and nothing of where it is", async () => {
    const { inbox, logIn, wire } = site();
    const page = await logIn();
    wire.cut();
    onTestFinished(wire.release);
    for (const path of ["/ops", "/ops/events", "/ops/review", "/ops/event?endpoint=a&event_id=b"]) {
      const answer = await page.goto(path);
      expect(answer?.status(), path).toBe(503);
      const text = await textOf(page);
      expect(text).toContain("This cannot be read now.");
      expect(text).toContain("what Stripe sends is answered with 5xx");
      expect(text).not.toContain(new URL(inbox.databaseUrl).pathname.slice(1));
    }
    await page.getByRole("main").getByRole("link", { name: "doctor" }).click();
    expect(await textOf(page)).toContain("Something is wrong");
    expect((await rowsOf(page, /Each thing/)).map((row) => row[1])).toContain("database");
  });

  test("of a form, sent when the database is down, says that nobody knows", async () => {
    const { inbox, logIn, wire } = site();
    await inbox.rows(
      `insert into webhook_inbox (endpoint, event_id, event_type, payload, attempts, parked_at, last_error)
       values ('billing', 'evt_down', 'invoice.paid', '{}', 3, now(), 'TypeError')`,
    );
    const page = await logIn();
    await page.goto("/ops/events/requeue?event_id=evt_down");
    await page.getByLabel("Why?").fill("mended");
    wire.cut();
    onTestFinished(wire.release);
    await page.getByRole("button", { name: "Requeue 1 event" }).click();
    expect(await textOf(page)).toContain("It did not come to a good end.");
    expect(await textOf(page)).toContain("the actions on record say");
  });

  test("of 100,000 in review counts as far as it can, and requeues part after part", async () => {
    const { inbox, logIn } = site();
    await inbox.rows(
      `insert into webhook_inbox (endpoint, event_id, event_type, payload, attempts, parked_at,
         last_error, received_at)
       select 'billing', 'evt_many' || n, 'invoice.paid', '{}', 3, now(), 'RangeError',
         now() - n * interval '1 s' from generate_series(1, 100000) n`,
    );
    const page = await logIn();
    await page.goto("/ops/review");
    expect((await rowsOf(page, /by reason/))[0]?.[1]).toBe("more than 5,000");
    await page.getByRole("link", { name: "requeue all…" }).first().click();
    expect(await textOf(page)).toContain(
      "More than 20,000 events: the oldest 20,000 are taken, the rest is left for another time.",
    );
    await page.getByLabel("Why?").fill("mended");
    await page.getByRole("button", { name: "Requeue 20,000 events" }).click();
    await page.getByRole("status").waitFor();
    const [{ requeued, recorded } = {}] = await inbox.rows(
      `select (select count(*)::int from webhook_inbox where parked_at is null) as requeued,
         (select sum(affected)::int from operator_actions) as recorded`,
    );
    expect(requeued).toBe(recorded);
    expect(Number(requeued)).toBeGreaterThanOrEqual(5_000);
    expect(Number(requeued)).toBeLessThanOrEqual(20_000);
    const said = Number(requeued).toLocaleString("en");
    expect(await page.getByRole("status").innerText()).toContain(`${said} events were requeued`);
  });

  test("of an event of 4 MiB shows its beginning, and has the whole of it to be taken away", async () => {
    const { inbox, logIn } = site();
    await inbox.rows(
      `insert into webhook_inbox (endpoint, event_id, event_type, payload, attempts, parked_at, last_error)
       values ('billing', 'evt_big', 'invoice.paid',
         jsonb_build_object('lines', (select jsonb_agg(jsonb_build_object('n', n, 'text', repeat('x', 200)))
           from generate_series(1, 18000) n)), 3, now(), 'Crashed')`,
    );
    const page = await logIn();
    const answer = await page.goto("/ops/event?endpoint=billing&event_id=evt_big");
    expect((await answer?.body())?.length).toBeLessThan(250_000);
    expect(await textOf(page)).toContain("only its beginning is shown here");
    const download = page.waitForEvent("download");
    await page.getByRole("link", { name: "Download it whole" }).click();
    const chunks: Buffer[] = [];
    for await (const chunk of await (await download).createReadStream()) chunks.push(chunk);
    const whole: unknown = JSON.parse(Buffer.concat(chunks).toString());
    expect(whole).toHaveProperty("lines.17999.n", 18_000);
  });
});

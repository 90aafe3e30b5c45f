/** How a browser gets in, and out, and what happens when the session ends in between. */
import { createHmac } from "node:crypto";
import { createServer } from "node:http";
import { once } from "node:events";
import { describe, expect, inject, onTestFinished, test } from "vitest";
import type { Page } from "playwright-core";
import { COOKIE } from "../worker/logged-in.ts";
import { OPS_TOKEN } from "../worker/operator.ts";
import { anInvoiceEvent } from "../worker/testbed.ts";
import { fillIn, textOf, useSite } from "./site.ts";

const heading = (page: Page) => page.getByRole("heading", { level: 1 }).innerText();

describe.skipIf(inject("chromium") === null)("a session", () => {
  const site = useSite();

  test("begins with a name and the token, and leads to where one wanted to go", async () => {
    const page = await site().visit();
    await page.goto("/ops/events?state=waiting&order=oldest");
    expect(await heading(page)).toBe("Log in");
    await fillIn(page, "Ada");
    expect(page.url()).toBe(`${site().url}ops/events?state=waiting&order=oldest`);
    expect(await page.getByRole("banner").innerText()).toContain("Ada");
  });

  test("does not begin with another token, and keeps the name and the way", async () => {
    const page = await site().visit();
    await page.goto("/ops/outbox");
    await fillIn(page, "Ada", "not the token");
    expect(await page.getByRole("alert").innerText()).toContain("That is not the token");
    expect(await page.getByLabel("Your name").inputValue()).toBe("Ada");
    expect(await page.getByLabel("OPS_TOKEN").inputValue()).toBe("");
    await fillIn(page, "Ada");
    expect(await heading(page)).toBe("Outbox");
  });

  test("ends with logging out", async () => {
    const page = await site().logIn();
    await page.getByRole("button", { name: "Log out" }).click();
    expect(await heading(page)).toBe("Log in");
    await page.goto("/ops/events");
    expect(await heading(page)).toBe("Log in");
    expect(await page.context().cookies()).toEqual([]);
  });

  test("that is over by its time lets nobody in, whatever the browser keeps", async () => {
    const page = await site().logIn();
    const [cookie] = await page.context().cookies();
    const key = createHmac("sha256", OPS_TOKEN).update("stripe-inbox: sessions").digest("base64");
    const signed = (endsAt: number): string => {
      const value = `${endsAt}.${Buffer.from("Ada").toString("base64url")}`;
      const signature = createHmac("sha256", key).update(value).digest("base64");
      return encodeURIComponent(`${value}.${signature}`);
    };
    const now = Math.floor(Date.now() / 1_000);
    for (const [endsAt, leadsTo] of [
      [now + 60, "Overview"],
      [now - 1, "Log in"],
    ] as const) {
      const { path: _, domain: __, ...kept } = cookie ?? { path: "", domain: "" };
      await page.context().clearCookies();
      await page
        .context()
        .addCookies([{ ...kept, name: COOKIE, value: signed(endsAt), url: `${site().url}ops` }]);
      await page.goto("/ops");
      expect(await heading(page), String(endsAt - now)).toBe(leadsTo);
    }
  });

  test("that ended before a form was sent: nothing is done, and the way back leads on", async () => {
    const { inbox, logIn } = site();
    const event = anInvoiceEvent("invoice.paid", { amountPaid: -1 });
    await inbox.deliver(event);
    const page = await logIn();
    await page.goto(`/ops/events/requeue?endpoint=billing&event_id=${event.id}`);
    await page.context().clearCookies();
    await page.getByLabel("Why?").fill("mended");
    await page.getByRole("button", { name: "Requeue 1 event" }).click();
    expect(await textOf(page)).toContain("Nothing was done: your session has ended.");
    expect(await page.getByLabel("What you typed").inputValue()).toBe("mended");
    expect(await inbox.rows("select * from operator_actions")).toEqual([]);
    await page.getByRole("link", { name: "Log in again" }).click();
    await fillIn(page, "Ada");
    await page.getByRole("button", { name: "Requeue 1 event" }).waitFor();
  });

  test("does nothing for a form on another site, in the same browser", async () => {
    const { inbox, logIn, url } = site();
    const event = anInvoiceEvent("invoice.paid", { amountPaid: -1 });
    await inbox.deliver(event);
    const foreign = createServer((_, response) => {
      response.setHeader("content-type", "text/html");
      response.end(`<form method="post" action="${url}ops/events/requeue">
        <input name="event_id" value="${event.id}"><input name="count" value="1">
        <input name="why" value="because"><button>Win</button></form>
        <a href="${url}ops/events">A link</a>`);
    });
    foreign.listen(0, "127.0.0.1");
    await once(foreign, "listening");
    onTestFinished(() => void foreign.close());
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- It listens on TCP.
    const { port } = foreign.address() as { port: number };
    const page = await logIn();
    // Another port is the same site to cookies, so that it even sends them.
    await page.goto(`http://127.0.0.1:${port}/`);
    await page.getByRole("button", { name: "Win" }).click();
    expect(await textOf(page)).toContain("This request was made by another site.");
    // To another host, no cookie is sent; a link from there is one click away from the session.
    await page.goto(`http://localhost:${port}/`);
    await page.getByRole("button", { name: "Win" }).click();
    expect(await textOf(page)).toContain("Nothing was done");
    expect(await inbox.rows("select * from operator_actions")).toEqual([]);
    await page.goto(`http://localhost:${port}/`);
    await page.getByRole("link", { name: "A link" }).click();
    expect(await heading(page)).toBe("Log in");
    await page.getByRole("link", { name: "go on" }).click();
    expect(await heading(page)).toBe("Events");
  });
});

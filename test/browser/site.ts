/**
 * The operator's pages as a browser sees them: the real Worker in workerd, bundled as for a deploy,
 * on a database of its own, with a wire between them that can be held or cut; and a real browser.
 */
import {
  type Browser,
  type BrowserContext,
  type BrowserContextOptions,
  type Page,
} from "playwright-core";
import { afterAll, beforeAll, inject } from "vitest";
import { startProxy } from "../local/proxy.ts";
import { bundle, startWorkerd } from "../proof/stage/workerd.ts";
import { OPS_TOKEN } from "../worker/operator.ts";
import { CONNECT_SECRET, openTestbed, SECRET, type Testbed } from "../worker/testbed.ts";
import { launch } from "./chromium.ts";

export interface Site {
  readonly url: string;
  /** The same database, reached past the wire and without the browser. */
  readonly inbox: Testbed;
  /** A new browser's window, in which nobody is logged in. */
  readonly visit: (options?: BrowserContextOptions) => Promise<Page>;
  /** A new browser's window, in which somebody has logged in. */
  readonly logIn: (operator?: string, options?: BrowserContextOptions) => Promise<Page>;
  readonly wire: Wire;
}

/** What is between the Worker and Postgres. */
export interface Wire {
  /** Nothing passes until it is released. */
  readonly hold: () => void;
  /** Whatever comes, or is held, is cut until it is released. */
  readonly cut: () => void;
  readonly release: () => void;
}

/** @returns the site, once `beforeAll` has run. */
export function useSite(vars: Readonly<Record<string, string>> = {}): () => Site {
  let site: Site | undefined;
  const closing: (() => Promise<unknown>)[] = [];
  beforeAll(async () => {
    const inbox = await openTestbed();
    const wire = await startWire(inbox.databaseUrl);
    closing.push(wire.close);
    const workerd = await startWorkerd([
      {
        name: "site",
        script: await bundle("src/index.ts"),
        databaseUrl: wire.databaseUrl,
        vars: {
          OPS_TOKEN,
          STRIPE_LIVEMODE: "false",
          STRIPE_WEBHOOK_SECRET: SECRET,
          STRIPE_CONNECT_WEBHOOK_SECRET: CONNECT_SECRET,
          ...vars,
        },
      },
    ]);
    closing.push(workerd.stop);
    const browser = await launch(inject("chromium") ?? "chrome");
    closing.push(() => browser.close());
    site = siteOf(browser, await workerd.url("site"), inbox, wire.wire);
  });
  afterAll(async () => {
    for (const close of closing.toReversed()) await close();
  });
  return () => {
    if (!site) throw new Error("Bug! The site is there once beforeAll has run.");
    return site;
  };
}

function siteOf(browser: Browser, url: string, inbox: Testbed, wire: Wire): Site {
  const newPage = async (options: BrowserContextOptions = {}): Promise<Page> => {
    const context: BrowserContext = await browser.newContext({ baseURL: url, ...options });
    context.setDefaultTimeout(15_000);
    return context.newPage();
  };
  return {
    url,
    inbox,
    wire,
    visit: newPage,
    logIn: async (operator = "Ada", options) => {
      const page = await newPage(options);
      await page.goto("/ops/login");
      await fillIn(page, operator);
      return page;
    },
  };
}

/** Logs in by the form. */
export async function fillIn(page: Page, operator: string, token = OPS_TOKEN): Promise<void> {
  await page.getByLabel("Your name").fill(operator);
  await page.getByLabel("OPS_TOKEN").fill(token);
  await page.getByRole("button", { name: "Log in" }).click();
}

/** What one reads on it. */
export function textOf(page: Page): Promise<string> {
  return page.locator("main").innerText();
}

/** The texts of each row of the table with this caption. */
export async function rowsOf(page: Page, caption: string | RegExp): Promise<string[][]> {
  const rows = await page.getByRole("table", { name: caption }).locator("tbody tr").all();
  return Promise.all(rows.map((row) => row.locator("td").allInnerTexts()));
}

async function startWire(databaseUrl: string) {
  let gate: PromiseWithResolvers<void> | null = null;
  let isCut = false;
  const proxy = await startProxy(databaseUrl, {
    fate: async () => {
      await gate?.promise;
      return isCut ? "cut before" : "pass";
    },
  });
  const wire: Wire = {
    hold: () => {
      gate = Promise.withResolvers();
    },
    cut: () => {
      isCut = true;
      gate?.resolve();
      gate = null;
    },
    release: () => {
      isCut = false;
      gate?.resolve();
      gate = null;
    },
  };
  // Miniflare insists on a password, also where Postgres asks for none.
  const url = new URL(proxy.route(databaseUrl));
  url.password = "none";
  return { wire, databaseUrl: url.href, close: proxy.close };
}

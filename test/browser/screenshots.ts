/**
 * `npm run screenshots`: the operator's pages as the README shows them, of a day that is made up:
 * some traffic, and some trouble.
 */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { Client } from "pg";
import type { Page } from "playwright-core";
import { createDatabase, createTemplate } from "../local/databases.ts";
import { startTemporaryCluster } from "../local/temporary-cluster.ts";
import { bundle, startWorkerd } from "../proof/stage/workerd.ts";
import { findChromium, launch } from "./chromium.ts";
import { fillDay } from "./made-up-day.ts";

const FOLDER = join(import.meta.dirname, "screenshots");
const OPS_TOKEN = "bWFkZSB1cCBmb3Igc2NyZWVuc2hvdHMgYW5kIG5vdGhpbmcgZWxzZQ==";
const DESK = { width: 1180, height: 860 };
const PHONE = { width: 390, height: 780 };

interface Shot {
  readonly name: string;
  readonly path: string;
  readonly dark?: boolean;
  readonly phone?: boolean;
  /** How much of a long page is shown, in pixels. */
  readonly most?: number;
  readonly prepare?: (page: Page) => Promise<unknown>;
}

function shots(event: string): readonly Shot[] {
  return [
    { name: "overview", path: "/ops", most: 1_500 },
    { name: "overview-dark", path: "/ops", dark: true },
    { name: "overview-phone", path: "/ops", phone: true },
    { name: "events", path: "/ops/events?type=invoice.paid" },
    {
      name: "event",
      path: `/ops/event?endpoint=billing&event_id=${event}`,
      most: 1_300,
      prepare: (page) => page.getByText("Show the payload").click(),
    },
    { name: "review", path: "/ops/review" },
    {
      name: "requeue",
      path: "/ops/events/requeue?reason=PermanentError%3Aamount_paid_unusable",
      prepare: (page) =>
        page.getByLabel("Why?").fill("amount_paid is read from the lines, 4f1c2aa"),
    },
    { name: "ignored", path: "/ops/ignored" },
    { name: "discrepancies", path: "/ops/discrepancies" },
    { name: "outbox", path: "/ops/outbox?state=done" },
    { name: "missed", path: "/ops/gaps" },
    { name: "actions", path: "/ops/actions" },
    { name: "doctor", path: "/ops/doctor", dark: true },
    { name: "login", path: "/ops/login" },
  ];
}

const cluster = await startTemporaryCluster();
try {
  const template = await createTemplate(cluster);
  const databaseUrl = new URL(await createDatabase(cluster, "screenshots", template));
  // Miniflare insists on a password, also where Postgres asks for none.
  databaseUrl.password = "none";
  const secret = "whsec_made_up_for_screenshots";
  const workerd = await startWorkerd([
    {
      name: "site",
      script: await bundle("src/index.ts"),
      databaseUrl: databaseUrl.href,
      vars: {
        OPS_TOKEN,
        STRIPE_LIVEMODE: "false",
        STRIPE_WEBHOOK_SECRET: secret,
        STRIPE_CONNECT_WEBHOOK_SECRET: "whsec_made_up_for_connect",
      },
    },
  ]);
  try {
    const url = await workerd.url("site");
    const door = { url: `${url}webhooks/stripe/billing`, secret };
    const client = new Client({ connectionString: databaseUrl.href });
    await client.connect();
    try {
      const event = await fillDay(client, door, () => workerd.scheduled("site", "* * * * *"));
      await shoot(url, shots(event));
    } finally {
      await client.end();
    }
  } finally {
    await workerd.stop();
  }
} finally {
  await cluster.stop();
}

async function shoot(url: string, all: readonly Shot[]): Promise<void> {
  const found = await findChromium();
  if (found === null) throw new Error("There is no browser: install Chrome.");
  const browser = await launch(found);
  mkdirSync(FOLDER, { recursive: true });
  for (const { name, path, dark = false, phone = false, most, prepare } of all) {
    const context = await browser.newContext({
      baseURL: url,
      viewport: phone ? PHONE : DESK,
      colorScheme: dark ? "dark" : "light",
    });
    const page = await context.newPage();
    await page.goto("/ops/login");
    if (name !== "login") {
      await page.getByLabel("Your name").fill("Ada");
      await page.getByLabel("OPS_TOKEN").fill(OPS_TOKEN);
      await page.getByRole("button", { name: "Log in" }).click();
      await page.goto(path);
    }
    await prepare?.(page);
    const whole = await page.evaluate<number>("document.documentElement.scrollHeight");
    const { width, height } = phone ? PHONE : DESK;
    await page.setViewportSize({ width, height: Math.max(300, Math.min(whole, most ?? height)) });
    await page.evaluate("scrollTo(0, 0)");
    await page.screenshot({ path: join(FOLDER, `${name}.png`) });
    console.log(`${name}.png`);
    await context.close();
  }
  await browser.close();
}

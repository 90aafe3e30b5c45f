/** What is around each page: where one is, who one is, and the way to all others. */
import { raw } from "hono/html";
import type { Child } from "hono/jsx";
import type { HtmlEscapedString } from "hono/utils/html";
import type { Identity } from "../ops-access.ts";

/** In this order they are named at the top. */
export const PAGES = [
  { name: "overview", path: "/ops", title: "Overview" },
  { name: "events", path: "/ops/events", title: "Events" },
  { name: "review", path: "/ops/review", title: "Needs review" },
  { name: "ignored", path: "/ops/ignored", title: "Ignored" },
  { name: "discrepancies", path: "/ops/discrepancies", title: "Discrepancies" },
  { name: "outbox", path: "/ops/outbox", title: "Outbox" },
  { name: "gaps", path: "/ops/gaps", title: "Missed" },
  { name: "actions", path: "/ops/actions", title: "Actions" },
  { name: "doctor", path: "/ops/doctor", title: "Doctor" },
] as const;

export type PageName = (typeof PAGES)[number]["name"];

export interface Surroundings {
  readonly title: string;
  /** Null: none of those at the top. */
  readonly page: PageName | null;
  /** Null: nobody is logged in. */
  readonly identity: Identity | null;
  /** The host by which this deployment was reached. */
  readonly host: string;
}

const STYLE_PATH = "/ops/style.css";

/** Markup as a text. */
export async function rendered(
  element: HtmlEscapedString | Promise<HtmlEscapedString>,
): Promise<string> {
  return (await element).toString();
}

/** A page without what it says: in two halves, for one whose middle comes later. */
export async function frameHalves(around: Surroundings): Promise<readonly [string, string]> {
  const whole = await rendered(
    <Frame {...around}>
      <hr />
    </Frame>,
  );
  const [before = "", after = ""] = whole.split("<hr/>");
  return [before, after];
}

function Frame({ title, page, identity, host, children }: Surroundings & { children: Child }) {
  return (
    <>
      {raw("<!DOCTYPE html>")}
      <html lang="en">
        <head>
          <meta charset="utf-8" />
          <meta name="viewport" content="width=device-width, initial-scale=1" />
          <meta name="color-scheme" content="light dark" />
          <title>{`${title} · stripe-inbox`}</title>
          <link rel="stylesheet" href={STYLE_PATH} />
        </head>
        <body>
          <a class="skip" href="#content">
            Skip to the content
          </a>
          <header class="top">
            <div>
              <div class="who">
                <span>
                  <strong>stripe-inbox</strong> <span class="faint">at {host}</span>
                </span>
                {identity && <Who identity={identity} />}
              </div>
              {identity && <Navigation page={page} />}
            </div>
          </header>
          {children}
        </body>
      </html>
    </>
  );
}

function Who({ identity: { operator, via } }: { identity: Identity }) {
  return (
    <form method="post" action="/ops/logout">
      <bdi>{operator ?? "nameless"}</bdi>
      {via === "session" && <button type="submit">Log out</button>}
    </form>
  );
}

function Navigation({ page }: Pick<Surroundings, "page">) {
  return (
    <nav aria-label="Pages">
      <ul>
        {PAGES.map(({ name, path, title }) => (
          <li>
            <a href={path} aria-current={name === page ? "page" : undefined}>
              {title}
            </a>
          </li>
        ))}
      </ul>
    </nav>
  );
}

export function Content({ title, children }: { title: string; children?: Child }) {
  return (
    <main id="content" tabindex={-1}>
      <h1>{title}</h1>
      {children}
    </main>
  );
}

/** /ops: the operator's door: logging in and out, and below it the JSON of /ops/api. */
import { Hono } from "hono";
import { raw } from "hono/html";
import { secureHeaders } from "hono/secure-headers";
import type { Endpoints } from "../endpoints.ts";
import { type DoorEnv, note } from "./answers.ts";
import { readBody } from "./body.ts";
import { FOREIGN, identify, isSameOrigin, logIn, logOut, whereConfigured } from "./ops-access.ts";
import { opsApi } from "./ops-api.ts";

/** A form's body, from whoever knocks. */
const FORM_LIMITS = { bytes: 8_192, ms: 5_000 };

export function opsDoor(endpoints: Endpoints): Hono<DoorEnv> {
  const door = new Hono<DoorEnv>({ strict: false });
  door.use(whereConfigured);
  door.use(
    secureHeaders({
      contentSecurityPolicy: {
        defaultSrc: ["'none'"],
        baseUri: ["'none'"],
        formAction: ["'self'"],
        frameAncestors: ["'none'"],
      },
      // For a host that answers by http, too, as on a laptop.
      strictTransportSecurity: false,
    }),
  );

  door.route("/api", opsApi(endpoints));

  door.get("/", async (c) => {
    const identity = await identify(c);
    return identity
      ? c.html(<Start operator={identity.operator} />)
      : c.redirect("/ops/login", 303);
  });
  door.get("/login", (c) => c.html(<Login />));
  door.post("/login", async (c) => {
    if (!isSameOrigin(c)) return c.json(FOREIGN, 403);
    const body = await readBody(c.req.raw, FORM_LIMITS);
    if (typeof body === "string") return c.json({ error: "The form cannot be read." }, 400);
    const form = new URLSearchParams(new TextDecoder().decode(body));
    const operator = form.get("operator")?.trim() ?? "";
    const isIn = await logIn(c, form.get("token")?.trim() ?? "", operator);
    note(c, { login: isIn ? "granted" : "refused" });
    if (isIn) return c.redirect("/ops", 303);
    return c.html(<Login operator={operator} refused />, 401);
  });
  door.post("/logout", (c) => {
    if (!isSameOrigin(c)) return c.json(FOREIGN, 403);
    logOut(c);
    return c.redirect("/ops/login", 303);
  });
  return door;
}

function Page({ title, children }: { title: string; children?: unknown }) {
  return (
    <>
      {raw("<!DOCTYPE html>")}
      <html lang="en">
        <head>
          <meta charset="utf-8" />
          <meta name="viewport" content="width=device-width, initial-scale=1" />
          <meta name="color-scheme" content="light dark" />
          <title>{title} · stripe-inbox</title>
        </head>
        <body>
          <main>
            <h1>{title}</h1>
            {children}
          </main>
        </body>
      </html>
    </>
  );
}

function Login({ operator = "", refused = false }: { operator?: string; refused?: boolean }) {
  return (
    <Page title="Log in">
      {refused && <p role="alert">That is not the token, or there is no name.</p>}
      <form method="post" action="/ops/login">
        <p>
          <label>
            Your name, for the record of what you do{" "}
            <input name="operator" value={operator} autocomplete="name" maxlength={100} required />
          </label>
        </p>
        <p>
          <label>
            OPS_TOKEN{" "}
            <input name="token" type="password" autocomplete="current-password" required />
          </label>
        </p>
        <button type="submit">Log in</button>
      </form>
    </Page>
  );
}

const READABLE = ["figures", "doctor", "events", "messages", "discrepancies", "actions"];

function Start({ operator }: { operator: string | null }) {
  return (
    <Page title="Operations">
      <p>You are {operator ?? "nameless"}.</p>
      <ul>
        {READABLE.map((name) => (
          <li>
            <a href={`/ops/api/${name}`}>{name}</a>
          </li>
        ))}
      </ul>
      <form method="post" action="/ops/logout">
        <button type="submit">Log out</button>
      </form>
    </Page>
  );
}

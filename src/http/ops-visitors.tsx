/** Who may see the pages: whoever is logged in. All others are led to where one logs in. */
import type { Context, Hono, MiddlewareHandler } from "hono";
import { type DoorEnv, note } from "./answers.ts";
import { identify, isSafe, isSameOrigin, logIn, logOut } from "./ops-access.ts";
import { readForm, typedIn } from "./form-body.ts";
import { showPage, type View } from "./page-answer.tsx";
import { hrefOf } from "./pages/links.ts";
import { Login, type LoginProps } from "./pages/login.tsx";
import { NotLoggedIn, Refused } from "./pages/trouble.tsx";

const START = "/ops";

export const visitorsOnly: MiddlewareHandler<DoorEnv> = async (c, next) => {
  const identity = await identify(c);
  if (!identity) {
    const { pathname, search } = new URL(c.req.url);
    if (isSafe(c)) return c.redirect(loginFor(pathname + search), 303);
    if (!isSameOrigin(c)) return foreign(c);
    const { typed, fields } = typedIn(await readForm(c));
    const body = <NotLoggedIn next={loginFor(hrefOf(pathname, fields))} typed={typed} />;
    return say(c, { title: "Not logged in", body, status: 401 });
  }
  if (identity.via === "session" && !isSafe(c) && !isSameOrigin(c)) return foreign(c);
  c.set("identity", identity);
  return next();
};

function loginFor(path: string): string {
  const wanted = ourPath(path);
  return hrefOf("/ops/login", { next: wanted === START ? undefined : wanted });
}

export function addLogin(door: Hono<DoorEnv>): void {
  door.get("/login", (c) => showLogin(c, { next: ourPath(c.req.query("next")) }));
  door.post("/login", async (c) => {
    if (!isSameOrigin(c)) return foreign(c);
    const form = await readForm(c);
    const operator = form["operator"]?.trim() ?? "";
    const next = ourPath(form["next"]);
    const isIn = await logIn(c, form["token"]?.trim() ?? "", operator);
    note(c, { login: isIn ? "granted" : "refused" });
    if (isIn) return c.redirect(next, 303);
    return showLogin(c, { operator, next, refused: true });
  });
  door.post("/logout", async (c) => {
    if (!isSameOrigin(c)) return foreign(c);
    logOut(c);
    return c.redirect("/ops/login", 303);
  });
}

function showLogin(c: Context<DoorEnv>, props: LoginProps): Promise<Response> {
  const body = <Login {...props} />;
  return say(c, { title: "Log in", body, status: props.refused ? 401 : 200 });
}

function foreign(c: Context<DoorEnv>): Promise<Response> {
  const problem = "This request was made by another site. Nothing was done.";
  return say(c, { title: "Not from here", body: <Refused problem={problem} />, status: 403 });
}

function say(c: Context<DoorEnv>, view: View): Promise<Response> {
  return showPage(c, { title: view.title, page: null }, Promise.resolve(view));
}

/** A path of ours and no other place: whoever logs in is not to be led elsewhere by a link. */
function ourPath(text: string | undefined): string {
  if (text === undefined || text.length > 4_000) return START;
  const url = URL.parse(text, "https://here.invalid");
  if (!url || url.origin !== "https://here.invalid" || text !== url.pathname + url.search) {
    return START;
  }
  const isPage = /^\/ops(?:\/(?!login|logout|api)|$)/.test(url.pathname);
  return isPage ? text : START;
}

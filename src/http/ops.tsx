/** /ops: the operator's door: logging in and out, the pages, and below them the JSON of /ops/api. */
import { Hono } from "hono";
import { secureHeaders } from "hono/secure-headers";
import type { Endpoints } from "../endpoints.ts";
import type { DoorEnv } from "./answers.ts";
import { whereConfigured } from "./ops-access.ts";
import { opsApi } from "./ops-api.ts";
import { showFault } from "./page-answer.tsx";
import { opsPages } from "./ops-pages.tsx";
import { addLogin } from "./ops-visitors.tsx";
import { STYLE } from "./pages/style.ts";

export function opsDoor(endpoints: Endpoints): Hono<DoorEnv> {
  const door = new Hono<DoorEnv>({ strict: false });
  door.use(whereConfigured);
  door.use(
    secureHeaders({
      // No script at all: whatever an event may hold, none of it is run.
      contentSecurityPolicy: {
        defaultSrc: ["'none'"],
        styleSrc: ["'self'"],
        baseUri: ["'none'"],
        formAction: ["'self'"],
        frameAncestors: ["'none'"],
      },
      referrerPolicy: "same-origin",
      // For a host that answers by http, too, as on a laptop.
      strictTransportSecurity: false,
    }),
  );

  door.route("/api", opsApi(endpoints));
  door.get("/style.css", (c) => c.body(STYLE, 200, { "content-type": "text/css; charset=utf-8" }));
  door.route("/", loginDoor());
  door.route("/", opsPages(endpoints));
  return door;
}

function loginDoor(): Hono<DoorEnv> {
  const login = new Hono<DoorEnv>({ strict: false });
  login.onError((fault, c) => showFault(c, fault));
  addLogin(login);
  return login;
}

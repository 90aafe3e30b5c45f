/** Made-up payments stay on this machine. */
import { expect, test } from "vitest";
import { whyDangerous } from "./settings.ts";

test.each([
  [undefined, {}, false, null],
  ["postgres://a:b@127.0.0.1:54329/stripe_inbox", {}, false, null],
  ["postgres://a:b@localhost/stripe_inbox", {}, false, null],
  ["postgres://a:b@[::1]/stripe_inbox", {}, false, null],
  ["postgres:///stripe_inbox?host=/run/postgresql", {}, false, null],
  ["postgres://a:pw@db.example.com/stripe_inbox", {}, true, null],
  ["postgres://a:pw@db.example.com/stripe_inbox", {}, false, "leads to db.example.com"],
  ["postgres://a:pw@localhost.example.com/stripe_inbox", {}, false, "leads to"],
  ["postgres://a:pw@127.0.0.1/b?host=db.example.com", {}, false, "leads to db.example.com"],
  [undefined, { STRIPE_API_KEY: "sk_test_1" }, false, null],
  [undefined, { STRIPE_API_KEY: "rk_live_1" }, false, "live mode"],
  [
    "postgres://a:pw@db.example.com/stripe_inbox",
    { STRIPE_API_KEY: "sk_live_1" },
    true,
    "live mode",
  ],
])("%s with %j, for tests: %j", (databaseUrl, settings, isForTests, why) => {
  const said = whyDangerous(databaseUrl, settings, isForTests);
  if (why === null) expect(said).toBeNull();
  else expect(said).toContain(why);
  expect(said ?? "").not.toContain("pw");
});

/** The doctor: by which road the database is reached, and what is to be said of it. */
import { expect, test } from "vitest";
import { examineSettings } from "../../src/doctor/settings.ts";
import { endpoints } from "../../src/endpoints.ts";
import { aDeployment, fails, skips, warns } from "./diagnosing.ts";

const CHECK = "road to the database";

test("of a deployment by DATABASE_URL, every finding is ok, and nobody is asked to pipeline", async () => {
  const { complaints, examine } = await aDeployment({ road: "neon" });
  expect(await complaints()).toEqual({});
  const { findings } = await examine();
  const found = (check: string) => findings.find((one) => one.check === check)?.found;
  expect(found(CHECK)).toContain("through a WebSocket of NEON_WS_PROXY");
  expect(found("pipelining")).toContain("none through a WebSocket; a round trip takes");
});

test("DATABASE_URL that is not used, since Hyperdrive is bound, is named", async () => {
  const { complaints } = await aDeployment({ env: { DATABASE_URL: "postgres://a:b@c.test/d" } });
  expect(await complaints()).toEqual({
    [CHECK]: warns("Hyperdrive; DATABASE_URL is set, too, and not used", "wrangler secret delete"),
  });
});

test("a DATABASE_URL that is unusable is named once, and its password nowhere", async () => {
  const env = { HYPERDRIVE: undefined, DATABASE_URL: "postgres:secret" };
  const { complaints } = await aDeployment({ env });
  expect(await complaints()).toMatchObject({
    settings: fails("DATABASE_URL must be", "Put DATABASE_URL right"),
    [CHECK]: skips("DATABASE_URL is unusable"),
    database: skips("DATABASE_URL is unusable"),
  });
});

test.each([
  ["ep-x.eu.aws.neon.tech", "warn"],
  ["ep-x-pooler.eu.aws.neon.tech", "ok"],
  ["db.example.com", "warn"],
])("of the host %s, it looks at the pooler: %s", async (host, state) => {
  // Nobody answers there: what is asked about the road is asked of the name alone.
  const env = { HYPERDRIVE: undefined, DATABASE_URL: `postgres://a:b@${host}/d` };
  const findings = examineSettings(endpoints, env);
  expect(findings.find(({ check }) => check === CHECK)).toMatchObject({ state });
});

test("where the database is not there, it says in which connection string to look", async () => {
  const { complaints } = await aDeployment({
    road: "neon",
    route: (url) => url.replace(/:\d+\//, ":1/"),
  });
  expect((await complaints())["database"]).toEqual(
    fails(
      "it cannot be connected to",
      "does the connection string (DATABASE_URL, through NEON_WS_PROXY) lead there",
    ),
  );
});

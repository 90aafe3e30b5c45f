/** `npm run doctor`, as it is typed, against a deployment that answers on this machine. */
import { once } from "node:events";
import { createServer, type IncomingHttpHeaders } from "node:http";
import { expect, onTestFinished, test } from "vitest";
import { LOOPBACK } from "../local/ports.ts";
import { OPS_TOKEN } from "../worker/operator.ts";
import { type Ran, runCliWith } from "./cli.ts";
import { aDeployment, type Deployment } from "./diagnosing.ts";

type Answer = Pick<Awaited<ReturnType<Deployment["ask"]>>, "status" | "text">;
/** Whoever answers there, to a path and an `authorization`; with all headers. */
type Door = (path: string, authorization: string, headers: IncomingHttpHeaders) => Promise<Answer>;

/** Opened within a test, and closed when that is over. */
async function serve(door: Door): Promise<string> {
  const server = createServer((request, response) => {
    door(request.url ?? "", request.headers.authorization ?? "", request.headers).then(
      ({ status, text }) => response.writeHead(status).end(text),
      () => request.socket.destroy(),
    );
  });
  server.listen(0, LOOPBACK);
  await once(server, "listening");
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  const address = server.address();
  if (typeof address !== "object" || address === null) throw new Error("Bug! This is TCP.");
  return `http://${LOOPBACK}:${address.port}`;
}

const toDeployment =
  ({ ask }: Deployment): Door =>
  (path, authorization) =>
    ask(path, { headers: { authorization } });

/** With a token in the environment; `null`: without. */
function doctor(url: string | null, token: string | null = OPS_TOKEN): Promise<Ran> {
  const flags = url === null ? [] : ["--url", url];
  return runCliWith({ OPS_TOKEN: token ?? "" }, "doctor", ...flags);
}

test("where nothing is wrong, it has a line for each finding, and ends with 0", async () => {
  const deployment = await aDeployment();
  const { findings } = await deployment.examine();
  const { status, text } = await doctor(await serve(toDeployment(deployment)));
  const lines = text.trimEnd().split("\n");
  expect(status).toBe(0);
  for (const { check } of findings) {
    const own = lines.filter(
      (line) => /^ok {7}/.test(line) && line.slice(9).startsWith(`${check}  `),
    );
    expect(own, check).toHaveLength(1);
  }
  expect(lines.slice(findings.length)).toEqual([
    "",
    `${findings.length} checks: 0 failed, 0 to look at.`,
  ]);
  expect(text).not.toContain("->");
});

test("what only warns is shown with what to do, and ends with 0", async () => {
  const deployment = await aDeployment({ env: { PROCESSING: "paused" } });
  const { status, text } = await doctor(await serve(toDeployment(deployment)));
  expect(status).toBe(0);
  expect(text).toMatch(/^warn +processing +paused: .+\n +-> Set PROCESSING = "on" once/m);
  expect(text).toContain("checks: 0 failed, 1 to look at.");
});

test("what fails is shown with what to do, and ends with 1; what was not looked at, without", async () => {
  const deployment = await aDeployment({
    env: { OUTBOX_QUEUE: undefined, STRIPE_API_KEY: undefined },
  });
  const { status, text } = await doctor(`${await serve(toDeployment(deployment))}/ops/`);
  expect(status).toBe(1);
  expect(text).toMatch(/^fail +queue +OUTBOX_QUEUE is not bound.+\n +-> npx wrangler queues/m);
  expect(text).toMatch(/^skipped +sweep +STRIPE_API_KEY is not set.+\n(?! *->)/m);
  expect(text).toContain("checks: 1 failed, 1 to look at.");
});

test("of two tokens, while one is being replaced, it shows the first", async () => {
  const url = await serve(toDeployment(await aDeployment()));
  expect(await doctor(url, `${OPS_TOKEN}, another-one`)).toMatchObject({ status: 0 });
});

const WRONG = "another-token-that-is-as-long-as-the-right-one";

test("a token that is not the deployment's ends with 2, and is not repeated", async () => {
  const { status, text } = await doctor(await serve(toDeployment(await aDeployment())), WRONG);
  expect(status).toBe(2);
  expect(text).toContain("OPS_TOKEN is not the one of that deployment");
  expect(text).not.toContain(WRONG);
});

test("a deployment without an operator's side ends with 2", async () => {
  const deployment = await aDeployment({ env: { OPS_TOKEN: undefined } });
  const { status, text } = await doctor(await serve(toDeployment(deployment)));
  expect(status).toBe(2);
  expect(text).toContain("has no operator's side");
});

test("a deployment whose token can be guessed says so, and ends with 2", async () => {
  const deployment = await aDeployment({ env: { OPS_TOKEN: "hunter2" } });
  const { status, text } = await doctor(await serve(toDeployment(deployment)));
  expect(status).toBe(2);
  expect(text).toContain("answers 503: OPS_TOKEN must be at least 32 random bytes");
});

test("what is no diagnosis ends with 2, whatever it is", async () => {
  const answers = [
    { status: 200, text: "<h1>Somebody else's page</h1>" },
    { status: 418, text: "" },
    { status: 200, text: '{"ok":true,"findings":[{}]}' },
    { status: 200, text: '{"ok":true,"findings":[]}' },
  ];
  const ran = await Promise.all(
    answers.map(async (answer) => doctor(await serve(() => Promise.resolve(answer)))),
  );
  for (const [n, { status }] of answers.entries()) {
    expect(ran[n]).toMatchObject({ status: 2, text: expect.stringContaining(`answers ${status}`) });
  }
});

test("who is sent to log in elsewhere is told of Cloudflare Access, whose service token it can carry", async () => {
  const seen: unknown[] = [];
  const url = await serve((_path, _authorization, headers) => {
    seen.push([headers["cf-access-client-id"], headers["cf-access-client-secret"]]);
    return Promise.resolve({ status: 302, text: "" });
  });
  const { status, text } = await doctor(url);
  expect(status).toBe(2);
  expect(text).toContain("CF_ACCESS_CLIENT_ID");
  const token = { CF_ACCESS_CLIENT_ID: "id.access", CF_ACCESS_CLIENT_SECRET: "secret" };
  await runCliWith({ OPS_TOKEN, ...token }, "doctor", "--url", url);
  expect(seen).toEqual([
    [undefined, undefined],
    ["id.access", "secret"],
  ]);
});

test("what keeps it from asking ends with 2, and is named", async () => {
  const nobody = "http://127.0.0.1:1";
  const obstacles = [
    [nobody, OPS_TOKEN, `${nobody} does not answer`],
    [null, OPS_TOKEN, "--url says which deployment"],
    ["ftp://inbox.test", OPS_TOKEN, "--url says which deployment"],
    [nobody, null, "OPS_TOKEN is not set"],
    [nobody, "Ω", "OPS_TOKEN holds what no header can"],
  ] as const;
  const ran = await Promise.all(obstacles.map(([url, token]) => doctor(url, token)));
  for (const [n, [, , said]] of obstacles.entries()) {
    expect(ran[n]).toMatchObject({ status: 2, text: expect.stringContaining(said) });
  }
});

test("a flag that there is not ends with 2; --help explains, and ends with 0", async () => {
  expect(await runCliWith({}, "doctor", "--fix")).toMatchObject({ status: 2 });
  const { status, text } = await runCliWith({}, "doctor", "--help");
  expect(status).toBe(0);
  expect(text).toContain("npm run doctor -- --url");
});

/**
 * `npm run doctor`: has a deployment look at itself, through its own bindings, and says line by line
 * what it found, and what to do.
 */
import { parseArgs } from "node:util";
import * as v from "valibot";
import { complain, Usage } from "./command.ts";

const HELP = `Has a deployment look at itself.

  npm run doctor -- --url https://stripe-inbox.example.workers.dev

OPS_TOKEN is the deployment's own; behind Cloudflare Access, CF_ACCESS_CLIENT_ID and
CF_ACCESS_CLIENT_SECRET are a service token's. Exit status 0 when nothing fails, 1 when something does, 2 when that
could not be found out. With STRIPE_API_KEY set there, Stripe's own view of the endpoint is compared.`;

const TIMEOUT_MS = 30_000;

const Diagnosis = v.object({
  ok: v.boolean(),
  findings: v.pipe(
    v.array(
      v.object({
        check: v.string(),
        state: v.picklist(["ok", "warn", "fail", "skipped"]),
        found: v.string(),
        todo: v.nullable(v.string()),
      }),
    ),
    // Who looked at nothing has found nothing out.
    v.minLength(1),
  ),
});

/** @returns the exit status. */
async function main(args: string[]): Promise<number> {
  const { values } = parseArgs({
    args,
    options: { url: { type: "string" }, help: { type: "boolean", short: "h", default: false } },
  });
  if (values.help) {
    console.log(HELP);
    return 0;
  }
  const { ok, findings } = await ask(readUrl(values.url), readToken());
  const width = Math.max(...findings.map(({ check }) => check.length));
  for (const { check, state, found, todo } of findings) {
    const line = `${state.padEnd(7)}  ${check.padEnd(width)}  ${found}`;
    console.log(todo === null ? line : `${line}\n${" ".repeat(width + 11)}-> ${todo}`);
  }
  const failed = findings.filter(({ state }) => state === "fail").length;
  const warned = findings.filter(({ state }) => state === "warn").length;
  console.log(`\n${findings.length} checks: ${failed} failed, ${warned} to look at.`);
  return ok ? 0 : 1;
}

function readUrl(text: string | undefined): URL {
  const url = URL.parse(text ?? "");
  if (!url || !/^https?:$/.test(url.protocol)) {
    throw new Usage("--url says which deployment: https://….");
  }
  return new URL("/ops/api/doctor", url.origin);
}

function readToken(): string {
  const token = process.env["OPS_TOKEN"]?.split(/[\s,]+/).find((one) => one !== "");
  if (token === undefined) throw new Usage("OPS_TOKEN is not set: it lets an operator in.");
  if (!/^[\x21-\x7e]+$/.test(token)) throw new Usage("OPS_TOKEN holds what no header can.");
  return token;
}

/** For Cloudflare Access, where it stands in front: a service token of its own. */
function accessHeaders(): Readonly<Record<string, string>> {
  const id = process.env["CF_ACCESS_CLIENT_ID"];
  const secret = process.env["CF_ACCESS_CLIENT_SECRET"];
  return id && secret ? { "cf-access-client-id": id, "cf-access-client-secret": secret } : {};
}

async function ask(url: URL, token: string): Promise<v.InferOutput<typeof Diagnosis>> {
  const response = await fetch(url, {
    headers: { authorization: `Bearer ${token}`, ...accessHeaders() },
    redirect: "manual",
    signal: AbortSignal.timeout(TIMEOUT_MS),
  }).catch(() => null);
  if (response === null) throw new Usage(`${url.origin} does not answer.`);
  if (response.status >= 300 && response.status < 400) {
    throw new Usage(
      `${url.origin} leads elsewhere: behind Cloudflare Access, set CF_ACCESS_CLIENT_ID and CF_ACCESS_CLIENT_SECRET.`,
    );
  }
  if (response.status === 404) {
    throw new Usage(
      `${url.origin} has no operator's side: is it this Worker, and is OPS_TOKEN set there?`,
    );
  }
  if (response.status === 401) throw new Usage("OPS_TOKEN is not the one of that deployment.");
  const said: unknown = await response.json().catch(() => null);
  const diagnosis = v.safeParse(Diagnosis, said);
  if (diagnosis.success) return diagnosis.output;
  const error = v.safeParse(v.object({ error: v.string() }), said);
  throw new Usage(
    `${url.origin} answers ${response.status}${error.success ? `: ${error.output.error}` : ""}.`,
  );
}

try {
  process.exitCode = await main(process.argv.slice(2));
} catch (error) {
  complain(error, HELP);
  process.exitCode = 2;
}
